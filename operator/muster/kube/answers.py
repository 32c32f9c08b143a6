"""What the API server's answers mean. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus

from muster.api.document import JSON
from muster.kube.errors import NO_ANSWER, ApiError, Cause
from muster.kube.kinds import Object

_MAX_TEXT_CHARS = 500


def decoded(text: bytes) -> Object:
    """The object that `text` is. Raises ApiError: what answered isn't an API server, or the answer is cut off."""
    try:
        value: JSON = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ApiError(NO_ANSWER, "Malformed", f"the answer is not a JSON object: {_shown(text)}")
    return value


def refusal(code: int, headers: Mapping[str, str], text: bytes) -> ApiError:
    """The error of an answer whose HTTP status is no success."""
    try:
        status = decoded(text)
    except ApiError:
        status = {}
    if status.get("kind") == "Status":
        return status_error(status, code, headers)
    return ApiError(
        code, _phrase(code), _shown(text) or _phrase(code), retry_after=_seconds(headers.get("Retry-After"))
    )


def status_error(status: Object, code: int, headers: Mapping[str, str] | None = None) -> ApiError:
    """The error that a metav1.Status tells; `code` where it has none, as `headers` have what else it lacks."""
    details = mapping(status.get("details"))
    told = status.get("code")
    known = told if isinstance(told, int) and told else code
    retry_after = _seconds(details.get("retryAfterSeconds")) or _seconds((headers or {}).get("Retry-After"))
    return ApiError(
        known,
        string(status.get("reason")) or _phrase(known),
        string(status.get("message")) or _phrase(known),
        causes=tuple(
            Cause(string(cause.get("field")), string(cause.get("message"))) for cause in objects(details.get("causes"))
        ),
        retry_after=retry_after,
    )


def string(value: JSON) -> str:
    """A field that is a string; "" when it's absent."""
    return value if isinstance(value, str) else ""


def mapping(value: JSON) -> Object:
    """A field that is an object; empty when it's absent."""
    return value if isinstance(value, dict) else {}


def objects(value: JSON) -> tuple[Object, ...]:
    """A field that is a list of objects; empty when it's absent."""
    return tuple(item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def _seconds(value: JSON) -> float | None:
    # A header may have a date instead, which the API server never sends.
    if isinstance(value, str):
        value = int(value) if value.isascii() and value.isdigit() else None
    return float(value) if isinstance(value, int) and value > 0 else None


def _phrase(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return "Unknown"


def _shown(text: bytes) -> str:
    return " ".join(text[:_MAX_TEXT_CHARS].decode("utf-8", "replace").split())
