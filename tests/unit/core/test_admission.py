"""The problems for which the admission webhook refuses a job."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.changes import ENDED_MESSAGE, IMMUTABLE_MESSAGE, MUTABLE_FIELDS
from muster.api.document import JSON
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.admission import JobChange, validate_change
from unit.api.api_resources import bad_resources, full_resource, problems, resource, spec

NOW = "2026-01-01T00:00:00Z"
COMPLETE: dict[str, JSON] = {
    "type": "Complete",
    "status": "True",
    "reason": "Done",
    "lastTransitionTime": NOW,
    "observedGeneration": 1,
}
REFUSED: dict[str, JSON] = {"type": "Accepted", "status": "False", "reason": "Invalid", "lastTransitionTime": NOW}
WRONG_TEMPLATE: JSON = {"spec": {"containers": [{"name": "traner", "image": "a"}]}}


def allow_all(job: Job, status: Status) -> None:
    del job, status


def refuse_role(job: Job, status: Status) -> None:
    del job, status
    raise InvalidResource((FieldProblem("spec.sagemaker.role", "this role is not allowed"),))


def problem_texts(change: JobChange) -> list[str]:
    return [f"{problem.path}: {problem.message}" for problem in validate_change(change, allow_all)]


def test_a_new_job_is_refused_with_the_problems_of_validation() -> None:
    """test_bad_resources.py checks all rows of the table; admission passes on whatever validation reports."""
    for row in bad_resources()[::20]:
        new_problems = validate_change(JobChange(row.value, None), allow_all)
        assert [(problem.path, problem.message) for problem in new_problems] == problems(row.value)


def test_a_valid_job_is_accepted_unless_the_operators_configuration_refuses_it() -> None:
    assert validate_change(JobChange(full_resource(), None), allow_all) == ()
    (problem,) = validate_change(JobChange(full_resource(), None), refuse_role)
    assert problem.path == "spec.sagemaker.role"


def stored_resource(changes: dict[str, JSON], **status: JSON) -> dict[str, JSON]:
    return {**resource(spec=spec(**changes)), "status": status}


def test_a_change_that_keeps_the_spec_is_not_validated() -> None:
    invalid = resource(spec=spec(template=WRONG_TEMPLATE))
    assert problem_texts(JobChange({**invalid, "metadata": {"name": "digits", "labels": {"a": "b"}}}, invalid)) == []
    assert problem_texts(JobChange(invalid, None)) != []


@pytest.mark.parametrize("suspend", [False, True])
def test_the_spec_of_an_ended_job_is_immutable(*, suspend: bool) -> None:
    before = stored_resource({"suspend": suspend}, conditions=[REFUSED, COMPLETE])
    for changes in ({"suspend": not suspend}, {"nodes": 3}, {"activeDeadlineSeconds": 60}):
        changed = resource(spec=spec(**{"suspend": suspend, **changes}))
        (name,) = changes
        assert problem_texts(JobChange(changed, before)) == [f"spec.{name}: {ENDED_MESSAGE}"]


def test_only_mutable_fields_of_a_running_job_may_change() -> None:
    before = stored_resource({}, startTime=NOW)
    assert problem_texts(JobChange(resource(spec=spec(activeDeadlineSeconds=60)), before)) == []
    assert problem_texts(JobChange(resource(spec=spec(nodes=3, image="b", suspend=True)), before)) == [
        f"spec.nodes: {IMMUTABLE_MESSAGE}",
        f"spec.image: {IMMUTABLE_MESSAGE}",
    ]
    for status in ({"suspend": True}, {}):
        conditions: list[JSON] = [] if status else [REFUSED]
        not_started = stored_resource({**status}, conditions=conditions)
        assert problem_texts(JobChange(resource(spec=spec(nodes=3)), not_started)) == []


def test_a_started_job_keeps_an_invalid_template_that_it_had_before() -> None:
    changed = resource(spec=spec(template=WRONG_TEMPLATE, activeDeadlineSeconds=60))
    running = stored_resource({"template": WRONG_TEMPLATE}, startTime=NOW)
    assert problem_texts(JobChange(changed, running)) == []
    waiting = stored_resource({"template": WRONG_TEMPLATE})
    assert [line.partition(":")[0] for line in problem_texts(JobChange(changed, waiting))] == [
        "spec.template.spec.containers[0].name"
    ]


def test_an_empty_list_equals_a_missing_field() -> None:
    assert problem_texts(JobChange(resource(spec=spec(env=[])), stored_resource({}, startTime=NOW))) == []


@given(st.dictionaries(st.sampled_from([*MUTABLE_FIELDS, "nodes", "image", "env"]), st.integers(), max_size=4))
def test_each_changed_field_of_an_ended_job_has_a_problem(changes: dict[str, int]) -> None:
    texts = problem_texts(JobChange(resource(spec=spec(**changes)), stored_resource({}, conditions=[COMPLETE])))
    assert {line.partition(":")[0] for line in texts} == {
        f"spec.{name}" for name, value in changes.items() if spec().get(name) != value
    }
