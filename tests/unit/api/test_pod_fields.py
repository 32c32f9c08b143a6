"""A template's fields are a pod's fields, of every release up to that of the schema."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.document import JSON, Document
from muster.api.field_problems import InvalidResource
from muster.api.validation.all_rules import RULES_AFTER_START
from muster.api.validation.rules.pods.fields import find_wrong_fields
from muster.api.validation.rules.pods.schema import POD_SPEC, load_pod_schema
from muster.api.validation.validate import MAX_SPEC_BYTES, validate
from unit.api.api_resources import resource, spec

SCALARS: dict[str, JSON] = {
    "text": "a",
    "integer": 1,
    "boolean": True,
    "quantity": "2Gi",
    "port": "http",
    "anything": 1,
}


def example(kind: str, depth: int) -> JSON:
    """Return a value of the type, with all its fields down to some depth."""
    if kind in SCALARS:
        return SCALARS[kind]
    if kind[0] == "[":
        return [example(kind[1:-1], depth)]
    if kind[0] == "{":
        return {"a": example(kind[1:-1], depth)}
    return {name: example(below, depth - 1) for name, below in load_pod_schema().types[kind].items()} if depth else {}


def test_a_pod_with_every_field_is_a_pod() -> None:
    pod = example(POD_SPEC, 9)
    assert isinstance(pod, dict)
    assert list(find_wrong_fields(pod, ())) == []
    assert {"containers", "volumes", "affinity", "schedulingGates"} < pod.keys()


@given(st.data())
def test_one_wrong_value_in_it_is_found_where_it_is(data: st.DataObject) -> None:
    pod = example(POD_SPEC, 6)
    at: JSON = pod
    path: list[str | int] = []
    kind = POD_SPEC
    while kind not in SCALARS:
        if kind[0] in "[{":
            step: str | int = 0 if kind[0] == "[" else "a"
            kind = kind[1:-1]
        else:
            types = load_pod_schema().types[kind]
            assert isinstance(at, dict)
            step = data.draw(st.sampled_from(sorted(at.keys() & types.keys())))
            kind = types[str(step)]
        path.append(step)
        around, at = at, at[step]  # type: ignore[index]
        if at in ({}, [{}]):
            break
    around[path[-1]] = 1.5 if kind not in ("quantity", "anything") else [[]]  # type: ignore[index]
    result = list(find_wrong_fields(pod, ()))  # type: ignore[arg-type]
    assert [one.path for one in result] == ([] if kind == "anything" else [tuple(path)])


@pytest.mark.parametrize("name", ["", "trainer", "training", "log", "tail", "restrainer", "t"])
def test_a_name_that_is_no_slip_is_a_sidecars(name: str) -> None:
    containers: JSON = [{"name": name, "image": "a"}]
    validate(Document(resource(spec=spec(template={"spec": {"containers": containers}}))))


def test_a_job_that_was_started_is_not_asked_for_its_templates_fields() -> None:
    document = Document(resource(spec=spec(template={"spec": {"containers": [{"name": "traner", "volumeMount": 1}]}})))
    with pytest.raises(InvalidResource):
        validate(document)
    validate(document, RULES_AFTER_START)


@pytest.mark.parametrize(
    "pod",
    [
        {f"containerz{number}": 1 for number in range(11_000)},
        {"containers": [{"name": f"a{number}", "imagepullpolicy": 1} for number in range(4_500)]},
        {"securityContext": {"supplementalGroups": ["" for _ in range(60_000)]}},
        {"tolerations": [{} for _ in range(60_000)]},
        {"x" * 200_000: 1},
    ],
    ids=["names", "containers", "numbers", "objects", "a long name"],
)
def test_the_worst_template_is_judged_in_bounded_time(pod: dict[str, JSON]) -> None:
    document = Document(resource(spec=spec(template={"spec": pod})))
    began = time.process_time()
    try:
        validate(document)
    except InvalidResource as invalid:
        assert len(invalid.problems) <= 40  # noqa: PT017 - not all of them are invalid
    assert time.process_time() - began < 2.0
    assert MAX_SPEC_BYTES == 256 * 1024
