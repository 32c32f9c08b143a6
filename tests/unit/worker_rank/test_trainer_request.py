"""Requests of Kubeflow Trainer's protocol, also forged ones."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_worker.rank_group.trainer_request import (
    MAX_BODY_BYTES,
    MAX_HEAD_BYTES,
    ReportedStatus,
    RequestRefused,
    parse_body,
    parse_head,
)

TOKEN = "c0ffee"


def head(line: str = "POST /status HTTP/1.1", *headers: str, token: str = TOKEN) -> bytes:
    return "\r\n".join([line, f"Authorization: Bearer {token}", *headers, "", ""]).encode()


def body(**fields: object) -> bytes:
    return json.dumps({"trainerStatus": fields}).encode()


def test_a_complete_head() -> None:
    data = head("POST /status HTTP/1.1", "content-LENGTH: 12", "Host: 127.0.0.1")
    parsed = parse_head(data + b"{}", TOKEN)
    assert parsed is not None
    assert (parsed.body_start, parsed.body_bytes) == (len(data), 12)
    assert parse_head(data[:-1], TOKEN) is None


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\x16\x03\x01\r\n\r\n", 400),
        (b"GARBAGE\r\n\r\n", 400),
        (b"POST /status HTTP/1.1\r\n\r\n", 401),
        (head(token="other"), 401),
        (head(token="coffée"), 401),
        (head("POST / HTTP/1.1"), 404),
        (head("GET /status HTTP/1.1"), 405),
        (head(), 411),
        (head("POST /status HTTP/1.1", "Content-Length: -1"), 411),
        (head("POST /status HTTP/1.1", "Content-Length: ²"), 411),
        (head("POST /status HTTP/1.1", f"Content-Length: {MAX_BODY_BYTES + 1}"), 413),
        (head("POST /status HTTP/1.1", "Content-Length: " + "9" * 5000), 413),
        (b"x" * (MAX_HEAD_BYTES + 1), 431),
    ],
)
def test_a_refused_head(data: bytes, code: int) -> None:
    with pytest.raises(RequestRefused) as refusal:
        parse_head(data, TOKEN)
    assert refusal.value.code == code


def test_what_transformers_sends() -> None:
    metrics = {"loss": 0.5, "current_step": 20, "total_steps": 100, "current_epoch": 0.2, "note": "warm"}
    reported = parse_body(
        body(
            lastUpdatedTime="2026-01-01T00:00:00+00:00",
            progressPercentage=20,
            estimatedRemainingSeconds=40,
            metrics=[{"name": name, "value": str(value)} for name, value in metrics.items()],
        )
    )
    assert reported == ReportedStatus(20, 40, 20, 100, {"loss": 0.5, "current_epoch": 0.2})


def test_an_empty_status_is_valid() -> None:
    assert parse_body(body()) == ReportedStatus()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[" * 10000,
        b"[]",
        b"{}",
        b'{"trainerStatus": 3}',
        body(progressPercentage=101),
        body(progressPercentage=True),
        body(progressPercentage="50"),
        body(estimatedRemainingSeconds=-1),
        body(estimatedRemainingSeconds=10**12),
        body(metrics={"loss": 1}),
        body(metrics=[{"name": "m", "value": "1"}] * 257),
    ],
)
def test_a_refused_body(data: bytes) -> None:
    with pytest.raises(RequestRefused) as refusal:
        parse_body(data)
    assert refusal.value.code == 400


@pytest.mark.parametrize("value", ["nan", "inf", "", "fast", None, [], True, 10**400, "1e999"])
def test_a_metric_that_is_no_number_is_left_out(value: object) -> None:
    assert parse_body(body(metrics=[{"name": "loss", "value": value}, "x", {"value": "1"}])).metrics == {}


@pytest.mark.parametrize("value", ["-1", "1.5", "nan", "1e300"])
def test_a_step_that_is_no_count_is_left_out(value: str) -> None:
    reported = parse_body(body(metrics=[{"name": name, "value": value} for name in ("current_step", "total_steps")]))
    assert (reported.step, reported.total_steps, reported.metrics) == (None, None, {})
    assert parse_body(body(metrics=[{"name": "total_steps", "value": "0"}])).total_steps is None


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_incomplete(data: bytes) -> None:
    with contextlib.suppress(RequestRefused):
        assert parse_head(data, TOKEN) is None
