"""Parses a request of Kubeflow Trainer's progress protocol: an HTTP request with the state of the training. Pure.

A user's process sends it, so every size is limited. The body is `{"trainerStatus": {"progressPercentage": 45,
"estimatedRemainingSeconds": 600, "metrics": [{"name": "loss", "value": "0.23"}]}}`; all its fields are optional.
Hugging Face Transformers sends the steps as the metrics `current_step` and `total_steps`.
"""

from __future__ import annotations

import hmac
import json
import math
from dataclasses import dataclass, field
from typing import Dict, List, Mapping, Optional

from muster_worker.contract.trainer_status import MAX_PERCENT, MAX_REMAINING_SECONDS
from muster_worker.rank.trainer_socket import PATH
from muster_worker.rank_group.progress import MAX_NAME_CHARS, MAX_STEP

MAX_HEAD_BYTES = 8 * 1024
MAX_BODY_BYTES = 64 * 1024
MAX_METRICS = 256
"""The Kubeflow SDK sends at most this number of metrics."""

STEP_METRIC = "current_step"
TOTAL_STEPS_METRIC = "total_steps"

_END_OF_HEAD = b"\r\n\r\n"


class RequestRefused(Exception):
    """The request is answered with the HTTP status `code` and a `reason` for the sender."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


@dataclass(frozen=True)
class RequestHead:
    """The checked head of a request. Its body is `body_bytes` long and starts at `body_start`."""

    body_start: int
    body_bytes: int


@dataclass(frozen=True)
class ReportedStatus:
    """The content of a valid request, with the metrics that are numbers."""

    percent: Optional[int] = None
    remaining_seconds: Optional[int] = None
    step: Optional[int] = None
    total_steps: Optional[int] = None
    metrics: Mapping[str, float] = field(default_factory=dict)


def parse_head(data: bytes, token: str) -> Optional[RequestHead]:
    """Parse the head at the start of `data`; None if it is incomplete. Raises `RequestRefused`."""
    end = data.find(_END_OF_HEAD)
    if end < 0:
        if len(data) > MAX_HEAD_BYTES:
            raise RequestRefused(431, "the head of the request is too long")
        return None
    request_line, *lines = data[:end].decode("latin-1").split("\r\n")
    words = request_line.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):  # noqa: PLR2004 - method, path, version
        raise RequestRefused(400, "expected an HTTP/1.1 request")
    headers = _parse_headers(lines)
    if not hmac.compare_digest(headers.get("authorization", "").encode(), f"Bearer {token}".encode()):
        raise RequestRefused(401, "the token is missing or wrong")
    if words[1] != PATH:
        raise RequestRefused(404, f"the path is {PATH}")
    if words[0] != "POST":
        raise RequestRefused(405, "only POST is possible")
    return RequestHead(end + len(_END_OF_HEAD), _parse_length(headers))


def parse_body(body: bytes) -> ReportedStatus:
    """Parse the body of a request. Raises `RequestRefused`."""
    try:
        document = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise RequestRefused(400, "the body is not JSON") from None
    status = document.get("trainerStatus") if isinstance(document, dict) else None
    if not isinstance(status, dict):
        raise RequestRefused(400, "trainerStatus: expected an object")
    values = _parse_metrics(status.get("metrics"))
    metrics = {name: value for name, value in values.items() if name not in (STEP_METRIC, TOTAL_STEPS_METRIC)}
    return ReportedStatus(
        percent=_parse_number(status, "progressPercentage", MAX_PERCENT),
        remaining_seconds=_parse_number(status, "estimatedRemainingSeconds", MAX_REMAINING_SECONDS),
        step=_find_step(values, STEP_METRIC, 0),
        total_steps=_find_step(values, TOTAL_STEPS_METRIC, 1),
        metrics=metrics,
    )


def _parse_headers(lines: List[str]) -> Dict[str, str]:
    headers: Dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers.setdefault(name.strip().lower(), value.strip())
    return headers


def _parse_length(headers: Mapping[str, str]) -> int:
    length = headers.get("content-length", "")
    if not (length.isascii() and length.isdigit()):
        raise RequestRefused(411, "the request needs a Content-Length")
    if len(length) > len(str(MAX_BODY_BYTES)) or int(length) > MAX_BODY_BYTES:
        raise RequestRefused(413, f"the body is longer than {MAX_BODY_BYTES} bytes")
    return int(length)


def _parse_number(status: Mapping[str, object], name: str, maximum: int) -> Optional[int]:
    value = status.get(name)
    if value is None:
        return None
    if type(value) is not int or not 0 <= value <= maximum:
        raise RequestRefused(400, f"trainerStatus.{name}: expected a whole number from 0 to {maximum}")
    return value


def _parse_metrics(entries: object) -> Dict[str, float]:
    """Return the metrics that are numbers. Others are valid in the protocol, but muster can't show them."""
    if entries is None:
        return {}
    if not isinstance(entries, list) or len(entries) > MAX_METRICS:
        raise RequestRefused(400, f"trainerStatus.metrics: expected a list of at most {MAX_METRICS} metrics")
    values: Dict[str, float] = {}
    for entry in entries:
        name = entry.get("name") if isinstance(entry, dict) else None
        value = _parse_value(entry.get("value")) if isinstance(entry, dict) else None
        if isinstance(name, str) and 0 < len(name) <= MAX_NAME_CHARS and name.isprintable() and value is not None:
            values[name] = value
    return values


def _parse_value(value: object) -> Optional[float]:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _find_step(values: Mapping[str, float], name: str, minimum: int) -> Optional[int]:
    value = values.get(name)
    if value is None or not value.is_integer() or not minimum <= value <= MAX_STEP:
        return None
    return int(value)
