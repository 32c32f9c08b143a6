"""Reviews from an API server, and from any other client."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.document import JSON
from muster.api.field_problems import FieldProblem
from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.controller.webhook.review import (
    MAX_PROBLEMS,
    MAX_REVIEW_BYTES,
    find_problems,
    make_denial_message,
    make_denial_status,
    read_review,
)
from muster.objects.kubernetes.json_parts import MalformedJson
from unit.api.api_resources import resource, spec

RESOURCE: JSON = {"group": "muster.dev", "version": "v1alpha1", "resource": "distributedtrainingjobs"}


def review(**fields: JSON) -> bytes:
    request: JSON = {
        "uid": "u",
        "namespace": "team",
        "name": "digits",
        "operation": "CREATE",
        "resource": RESOURCE,
        "userInfo": {"username": "someone", "groups": ["a"] * 9},
        "object": resource(),
        "oldObject": None,
        **fields,
    }
    return json.dumps({"kind": "AdmissionReview", "request": request}).encode()


def nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def deep(where: str, levels: int) -> bytes:
    """Return a review of a job with the deepest nesting that the API server accepts."""
    value: dict[str, JSON] = {**resource(), "metadata": {"name": "digits", "managedFields": 1}, where: "DEEP"}
    if where == "managedFields":
        del value[where]
        value["metadata"] = {"name": "digits", "managedFields": "DEEP"}
    return review(object=value).replace(b'"DEEP"', nested(levels).encode())


def anything(job: Job, status: Status) -> None:
    del job, status


def said(text: bytes) -> list[str]:
    fields = read_review(text).fields
    wanted, stored = fields["object"], fields["oldObject"]
    assert isinstance(wanted, dict)
    assert stored is None or isinstance(stored, dict)
    return [str(problem) for problem in find_problems(wanted, stored, anything)]


def test_the_review_ignores_who_asks() -> None:
    read = read_review(review())
    assert (read.uid, read.namespace, read.name) == ("u", "team", "digits")
    assert read.fields["userInfo"] == {}
    assert said(review()) == []


def test_a_job_that_is_too_deep_is_refused_where_it_matters() -> None:
    (problem,) = said(deep("spec", 9_000))
    assert problem == "spec: nested more than 100 levels deep"
    assert said(deep("managedFields", 9_000)) == []
    assert said(deep("status", 9_000)) == []


def test_a_spec_that_is_too_long_is_refused_unread() -> None:
    (problem,) = said(review(object=resource(spec=spec(command=["a" * 700_000]))))
    assert problem.startswith("spec: found 700")


def test_what_was_stored_unread_may_be_let_go() -> None:
    long = resource(spec=spec(command=["a" * 700_000]))
    assert said(review(object=long, oldObject=long, operation="UPDATE")) == []


@pytest.mark.parametrize("changed", [{"command": ["half of a pair: \ud800"]}, {"\udfff": 1}])
def test_a_spec_that_is_not_unicode_is_refused_unread(changed: dict[str, JSON]) -> None:
    # The API server sends none, but any pod may. Each would be an error of muster's own, with its stack in the log.
    (problem,) = said(review(object=resource(spec=spec(**changed))))
    assert problem.startswith("spec: ")
    assert "surrogates not allowed" in problem


def test_a_status_that_is_not_unicode_is_not_read() -> None:
    stored: JSON = {**resource(), "status": {"message": "\udc00\ud800"}}
    assert said(review(object=resource(spec=spec(nodes=3)), oldObject=stored)) == []


def test_a_character_of_two_halves_is_read() -> None:
    assert said(review(object=resource(spec=spec(command=["\U0001f600"])))) == []


def test_the_longest_review_is_read_in_bounded_time() -> None:
    texts = [
        b"[" * MAX_REVIEW_BYTES,
        b'{"request":' * (MAX_REVIEW_BYTES // 11),
        b'{"request":{"object":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}}",
        b'{"request":{' + b",".join(b'"a%d":1' % number for number in range(200_000)) + b"}}",
        b'{"request":{"object":{"spec":"' + b"\\\\" * 900_000 + b'"}}}',
    ]
    for text in texts:
        began = time.process_time()
        with pytest.raises(MalformedJson):
            read_review(text[:MAX_REVIEW_BYTES])
        assert time.process_time() - began < 2.0


@given(st.binary(max_size=200) | st.text().map(str.encode) | st.integers(0, 400).map(lambda end: review()[:end]))
def test_a_body_that_is_not_a_review_is_malformed(text: bytes) -> None:
    with pytest.raises(MalformedJson):
        read_review(text)


def test_a_refusal_names_every_field_as_the_api_servers_own() -> None:
    problems = [FieldProblem(f"spec.x{number}", "found 0") for number in range(MAX_PROBLEMS + 5)]
    status = make_denial_status(read_review(review()), problems)
    details = status["details"]
    assert isinstance(details, dict)
    causes = details["causes"]
    assert isinstance(causes, list)
    assert causes[0] == {"reason": "FieldValueInvalid", "field": "spec.x0", "message": "found 0"}
    assert (len(causes), status["reason"], status["code"]) == (MAX_PROBLEMS, "Invalid", 422)
    assert make_denial_message(problems).endswith("; and 5 more")
