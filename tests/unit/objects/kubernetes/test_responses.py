import json

import pytest

from muster.objects.kubernetes.errors import NO_RESPONSE, ApiError, Cause
from muster.objects.kubernetes.kinds import ParseOptions
from muster.objects.kubernetes.responses import build_response_error, parse_object

STATUS = {"kind": "Status", "code": 422, "reason": "Invalid", "message": "it is wrong"}
CAUSES = [{"reason": "FieldValueRequired", "field": "spec.x", "message": "Required value"}, {"field": "spec.y"}]


def test_a_status_is_read_whole() -> None:
    body = {**STATUS, "details": {"causes": CAUSES, "retryAfterSeconds": 4}}
    error = build_response_error(422, {"Retry-After": "9"}, json.dumps(body).encode())
    assert (error.status, error.reason, error.message, error.retry_after) == (422, "Invalid", "it is wrong", 4.0)
    assert error.causes == (Cause("spec.x", "Required value"), Cause("spec.y", ""))


@pytest.mark.parametrize(
    ("code", "text", "reason", "message"),
    [
        (502, b"<html>\n bad  gateway", "Bad Gateway", "<html> bad gateway"),
        (503, b"", "Service Unavailable", "Service Unavailable"),
        (418, b'{"kind": "Status"}', "I'm a Teapot", "I'm a Teapot"),
        (599, b"[]", "Unknown", "[]"),
        (500, b"\xff" * 10_000, "Internal Server Error", "\ufffd" * 500),
    ],
)
def test_an_answer_that_is_no_status_is_shown(code: int, text: bytes, reason: str, message: str) -> None:
    error = build_response_error(code, {}, text)
    assert (error.status, error.reason, error.message) == (code, reason, message)


@pytest.mark.parametrize(
    ("header", "seconds"), [("7", 7.0), ("0", None), ("Wed, 21 Oct 2026 07:28:00 GMT", None), ("²", None)]
)
def test_when_to_come_again_is_seconds(header: str, seconds: float | None) -> None:
    assert build_response_error(429, {"Retry-After": header}, b"").retry_after == seconds


@pytest.mark.parametrize("text", [b"", b'{"kind": "Po', b"[]", b"3", b"\xff", b"<html>"])
def test_what_is_no_object_is_no_answer(text: bytes) -> None:
    with pytest.raises(ApiError) as caught:
        parse_object(text, ParseOptions())
    assert (caught.value.status, caught.value.reason) == (NO_RESPONSE, "Malformed")
