"""What the mutating webhook answers."""

import asyncio
import base64
import json

import pytest

from muster.api.document import JSON
from muster.api.spec.template_ref import TemplateRef
from muster.controller.webhook.review import Review
from muster.controller.webhook.template_merger import ReadTemplate, TemplateMerger
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import Object

TEMPLATE: Object = {
    "apiVersion": "muster.dev/v1alpha1",
    "kind": "TrainingTemplate",
    "metadata": {"name": "large", "generation": 7},
    "spec": {"image": "a", "launcher": {"direct": {}}},
}


LARGE: JSON = {"image": "a", "command": ["a" * 30_000, "a" * 30_000, "a" * 30_000]}


def job(spec: JSON, **metadata: JSON) -> dict[str, JSON]:
    return {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "DistributedTrainingJob",
        "metadata": {"name": "digits", **metadata},
        "spec": spec,
    }


def review(spec: JSON, old: JSON = None, **metadata: JSON) -> Review:
    return Review("u", "team", "digits", {"object": job(spec, **metadata), "oldObject": old})


def ask(current: Review, answer: Object | ApiError = TEMPLATE) -> tuple[dict[str, JSON], list[tuple[str, str, str]]]:
    """Return the response, and the templates that it read."""
    read: list[tuple[str, str, str]] = []

    async def read_template(reference: TemplateRef, namespace: str) -> Object:
        read.append((reference.kind, reference.name, namespace))
        if isinstance(answer, ApiError):
            raise answer
        return answer

    reader: ReadTemplate = read_template
    response = asyncio.run(TemplateMerger(reader).answer(current))["response"]
    assert isinstance(response, dict)
    assert response["uid"] == "u"
    return response, read


def read_operations(response: dict[str, JSON]) -> list[dict[str, JSON]]:
    assert (response["allowed"], response["patchType"]) == (True, "JSONPatch"), response
    operations: list[dict[str, JSON]] = json.loads(base64.b64decode(str(response["patch"])))
    return operations


MERGED: JSON = {
    "templateRef": {"kind": "TrainingTemplate", "name": "large", "generation": 7},
    "command": ["true"],
    "nodes": 2,
    "image": "a",
    "launcher": {"direct": {}},
}
KEPT = json.dumps(TEMPLATE["spec"], separators=(",", ":"))


def test_the_job_gets_the_values_and_the_generation_of_the_template_and_keeps_the_template() -> None:
    response, read = ask(review({"templateRef": {"name": "large"}, "command": ["true"], "nodes": 2}))

    assert read == [("TrainingTemplate", "large", "team")]
    assert read_operations(response) == [
        {"op": "replace", "path": "/spec", "value": MERGED},
        {"op": "add", "path": "/metadata/annotations", "value": {}},
        {"op": "add", "path": "/metadata/annotations/muster.dev~1template", "value": KEPT},
    ]


def test_the_other_annotations_of_the_job_remain() -> None:
    response, _ = ask(review({"templateRef": {"name": "large"}, "command": ["true"]}, annotations={"a": "b"}))

    assert [operation["path"] for operation in read_operations(response)] == [
        "/spec",
        "/metadata/annotations/muster.dev~1template",
    ]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"command": ["true"], "nodes": 2, "templateRef": {"name": "large"}}, id="the file replaces it"),
        pytest.param(MERGED, id="the merged job"),
    ],
)
def test_a_changed_job_keeps_the_template_of_its_creation(spec: JSON) -> None:
    old = job(MERGED, annotations={"muster.dev/template": KEPT})
    changed: Object = {**TEMPLATE, "spec": {"image": "changed"}}

    response, read = ask(review(spec, old), changed)

    assert read == []
    assert read_operations(response)[0]["value"] == MERGED
    assert read_operations(response)[-1]["value"] == KEPT


def test_the_template_of_a_job_can_not_change() -> None:
    old = job(MERGED, annotations={"muster.dev/template": KEPT})
    response, _ = ask(review({"templateRef": {"name": "other"}, "command": ["true"]}, old))

    assert response["allowed"] is False
    assert "spec.templateRef: the template of a job can't change" in str(response["status"])


def test_a_stored_job_may_begin_to_name_a_template() -> None:
    response, read = ask(review({"templateRef": {"name": "large"}, "command": ["true"], "nodes": 2}, job({})))

    assert read == [("TrainingTemplate", "large", "team")]
    assert read_operations(response)[0]["value"] == MERGED


@pytest.mark.parametrize("text", ["{", "[]", "[" * 5000, "3"])
def test_an_edited_annotation_is_no_template(text: str) -> None:
    response, _ = ask(review(MERGED, job(MERGED, annotations={"muster.dev/template": text})))

    assert response["allowed"] is False
    assert "spec.templateRef.generation: muster sets this field" in str(response["status"])


@pytest.mark.parametrize(
    ("spec", "metadata"),
    [
        pytest.param({"command": ["true"]}, {}, id="no template"),
        pytest.param(MERGED, {"annotations": {"muster.dev/template": KEPT}}, id="restored from a backup"),
        pytest.param("?", {}, id="no spec"),
    ],
)
def test_other_jobs_are_allowed_unchanged(spec: JSON, metadata: dict[str, JSON]) -> None:
    assert ask(review(spec, **metadata)) == ({"uid": "u", "allowed": True}, [])


@pytest.mark.parametrize(
    ("spec", "answer", "expected"),
    [
        pytest.param(
            {"templateRef": {"name": "large"}},
            ApiError(404, "NotFound", "?"),
            "there is no TrainingTemplate large in the namespace team; `kubectl get trainingtemplates` lists",
            id="a template that does not exist",
        ),
        pytest.param(
            {"templateRef": {"kind": "ClusterTrainingTemplate", "name": "large"}},
            ApiError(503, "ServiceUnavailable", "etcd is away"),
            "spec.templateRef: ClusterTrainingTemplate large could not be read: etcd is away; try again",
            id="an API server that fails",
        ),
        pytest.param(
            {"templateRef": {"name": "Large"}}, TEMPLATE, "expected are the fields name and kind", id="a bad name"
        ),
        pytest.param({"templateRef": "large"}, TEMPLATE, "spec.templateRef: found", id="a bad reference"),
        pytest.param(
            {"templateRef": {"name": "large", "generation": 7}},
            TEMPLATE,
            "spec.templateRef.generation: muster sets this field when it merges the template; remove it",
            id="a generation that the user sets",
        ),
        pytest.param(
            {"templateRef": {"name": "large"}},
            {**TEMPLATE, "spec": LARGE},
            "TrainingTemplate large has more than 65536 characters",
            id="a large template",
        ),
        pytest.param(
            {"templateRef": {"name": "large"}},
            {**TEMPLATE, "spec": {"image": 3}},
            "spec.templateRef: TrainingTemplate large is invalid: spec.image: found 3",
            id="an invalid template",
        ),
        pytest.param(
            {"templateRef": {"name": "large"}, "command": ["true"]},
            {**TEMPLATE, "spec": {"launcher": {"mpi": {"args": ["x"]}}}},
            "(the value comes from TrainingTemplate large)",
            id="a rule that a value of the template breaks",
        ),
    ],
)
def test_a_problem_is_a_denial(spec: JSON, answer: Object | ApiError, expected: str) -> None:
    response, _ = ask(review(spec), answer)

    assert response["allowed"] is False
    assert isinstance(response["status"], dict)
    assert expected in str(response["status"]["message"])
    assert response["status"]["code"] == 422


def test_a_job_without_a_name_yet_is_merged() -> None:
    current = review({"templateRef": {"name": "large"}, "command": ["true"]}, generateName="digits-")
    job = current.fields["object"]
    assert isinstance(job, dict)
    job["metadata"] = {"generateName": "digits-"}
    assert ask(current)[0]["allowed"] is True
