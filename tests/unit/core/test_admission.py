"""The refusals of a job before it is stored."""

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
END: dict[str, JSON] = {
    "type": "Complete",
    "status": "True",
    "reason": "Done",
    "lastTransitionTime": NOW,
    "observedGeneration": 1,
}
REFUSED: dict[str, JSON] = {"type": "Accepted", "status": "False", "reason": "Invalid", "lastTransitionTime": NOW}
SLIP: JSON = {"spec": {"containers": [{"name": "traner", "image": "a"}]}}


def anything(job: Job, status: Status) -> None:
    del job, status


def nothing(job: Job, status: Status) -> None:
    del job, status
    raise InvalidResource((FieldProblem("spec.sagemaker.role", "this role is not allowed"),))


def objection_texts(change: JobChange) -> list[str]:
    return [f"{problem.path}: {problem.message}" for problem in validate_change(change, anything)]


@pytest.mark.parametrize("row", bad_resources(), ids=lambda row: f"{row.at} {row.says}"[:60])
def test_a_new_jobs_refusal_has_the_problems_of_validation(row: object) -> None:
    value = row.value  # type: ignore[attr-defined]
    assert [
        (problem.path, problem.message) for problem in validate_change(JobChange(value, None), anything)
    ] == problems(value)


def test_a_good_job_is_stored_unless_the_operator_is_configured_otherwise() -> None:
    assert validate_change(JobChange(full_resource(), None), anything) == ()
    (refusal,) = validate_change(JobChange(full_resource(), None), nothing)
    assert refusal.path == "spec.sagemaker.role"


def stored(changes: dict[str, JSON], **status: JSON) -> dict[str, JSON]:
    return {**resource(spec=spec(**changes)), "status": status}


def test_who_does_not_touch_the_spec_is_not_asked() -> None:
    invalid = resource(spec=spec(template=SLIP))
    assert objection_texts(JobChange({**invalid, "metadata": {"name": "digits", "labels": {"a": "b"}}}, invalid)) == []
    assert objection_texts(JobChange(invalid, None)) != []


@pytest.mark.parametrize("suspend", [False, True])
def test_a_job_that_is_over_keeps_its_spec(*, suspend: bool) -> None:
    before = stored({"suspend": suspend}, conditions=[REFUSED, END])
    for changes in ({"suspend": not suspend}, {"nodes": 3}, {"activeDeadlineSeconds": 60}):
        now = resource(spec=spec(**{"suspend": suspend, **changes}))
        (name,) = changes
        assert objection_texts(JobChange(now, before)) == [f"spec.{name}: {ENDED_MESSAGE}"]


def test_a_job_that_runs_changes_in_what_means_something_to_its_ranks() -> None:
    before = stored({}, startTime=NOW)
    assert objection_texts(JobChange(resource(spec=spec(activeDeadlineSeconds=60)), before)) == []
    assert objection_texts(JobChange(resource(spec=spec(nodes=3, image="b", suspend=True)), before)) == [
        f"spec.nodes: {IMMUTABLE_MESSAGE}",
        f"spec.image: {IMMUTABLE_MESSAGE}",
    ]
    for status in ({"suspend": True}, {}):
        conditions: list[JSON] = [] if status else [REFUSED]
        free = stored({**status}, conditions=conditions)
        assert objection_texts(JobChange(resource(spec=spec(nodes=3)), free)) == []


def test_a_job_that_was_started_is_judged_by_the_rules_that_last() -> None:
    slip = resource(spec=spec(template=SLIP, activeDeadlineSeconds=60))
    running = stored({"template": SLIP}, startTime=NOW)
    assert objection_texts(JobChange(slip, running)) == []
    waiting = stored({"template": SLIP})
    assert [line.partition(":")[0] for line in objection_texts(JobChange(slip, waiting))] == [
        "spec.template.spec.containers[0].name"
    ]


def test_an_empty_list_is_as_good_as_none() -> None:
    assert objection_texts(JobChange(resource(spec=spec(env=[])), stored({}, startTime=NOW))) == []


@given(st.dictionaries(st.sampled_from([*MUTABLE_FIELDS, "nodes", "image", "env"]), st.integers(), max_size=4))
def test_what_is_said_of_a_change_names_its_fields(changes: dict[str, int]) -> None:
    said = objection_texts(JobChange(resource(spec=spec(**changes)), stored({}, conditions=[END])))
    assert {line.partition(":")[0] for line in said} == {
        f"spec.{name}" for name, value in changes.items() if spec().get(name) != value
    }
