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


def review(spec: JSON, **metadata: JSON) -> Review:
    job: JSON = {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "DistributedTrainingJob",
        "metadata": {"name": "digits", **metadata},
        "spec": spec,
    }
    return Review("u", "team", "digits", {"object": job})


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


def test_the_spec_gets_the_values_and_the_generation_of_the_template() -> None:
    response, read = ask(review({"templateRef": {"name": "large"}, "command": ["true"], "nodes": 2}))

    assert read == [("TrainingTemplate", "large", "team")]
    assert (response["allowed"], response["patchType"]) == (True, "JSONPatch")
    assert json.loads(base64.b64decode(str(response["patch"]))) == [
        {
            "op": "replace",
            "path": "/spec",
            "value": {
                "templateRef": {"kind": "TrainingTemplate", "name": "large", "generation": 7},
                "command": ["true"],
                "nodes": 2,
                "image": "a",
                "launcher": {"direct": {}},
            },
        }
    ]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"command": ["true"]}, id="no template"),
        pytest.param({"templateRef": {"name": "large", "generation": 3}}, id="merged"),
        pytest.param("?", id="no spec"),
    ],
)
def test_other_jobs_are_allowed_unchanged(spec: JSON) -> None:
    assert ask(review(spec)) == ({"uid": "u", "allowed": True}, [])


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
        pytest.param(
            {"templateRef": "large"}, TEMPLATE, 'spec.templateRef: found the text "large"', id="a bad reference"
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
