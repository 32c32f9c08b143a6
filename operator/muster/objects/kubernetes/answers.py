"""Interpret the API server's responses. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from muster.api.document import JSON
from muster.api.json_fields import mapping, objects, string
from muster.objects.kubernetes.errors import NO_ANSWER, ApiError, Cause
from muster.objects.kubernetes.json_parts import Malformed, Part, value_in
from muster.objects.kubernetes.kinds import Object, Reading
from muster.objects.kubernetes.reading import read_object

_MAX_TEXT_CHARS = 500


@dataclass(frozen=True)
class Page:
    """A page of a list: `items` are not parsed yet, `rest` is the token of the next page ("": this is the last)."""

    items: tuple[Part, ...]
    resource_version: str
    rest: str

    def objects(self, reading: Reading) -> Iterator[Object]:
        """Parse item by item, to keep memory low. Invalid items are skipped."""
        for item in self.items:
            try:
                yield read_object(item, reading)
            except Malformed:
                continue


@dataclass(frozen=True)
class WatchEvent:
    """A line of a watch; its object is not parsed yet."""

    type: str
    object: Part


def decoded(text: bytes, reading: Reading) -> Object:
    """Parse an object. Raises ApiError if the response isn't an API server's, or is truncated."""
    try:
        part = value_in(text)
        object_ = read_object(part, reading)
        is_complete = not text[part.end :].strip()
    except Malformed as problem:
        raise _malformed(text) from problem
    if not is_complete:
        raise _malformed(text)
    return object_


def read_page(text: bytes) -> Page:
    """Parse a page of a list. Raises ApiError like `decoded`."""
    items: tuple[Part, ...] = ()
    metadata: Object = {}
    try:
        for name, member in value_in(text).members():
            if name == "items" and member.is_list:
                items = tuple(member.elements())
            elif name == "metadata":
                metadata = mapping(member.value())
    except ValueError as problem:
        raise _malformed(text) from problem
    return Page(items, string(metadata.get("resourceVersion")), string(metadata.get("continue")))


def read_event(line: bytes) -> WatchEvent:
    """Parse a line of a watch. Raises ApiError like `decoded`."""
    kind = ""
    try:
        for name, member in value_in(line).members():
            if name == "type":
                kind = string(member.value())
            elif name == "object":
                return WatchEvent(kind, member)
    except ValueError as problem:
        raise _malformed(line) from problem
    raise _malformed(line)


def event_object(event: WatchEvent, reading: Reading) -> Object:
    """Parse the event's object. Raises ApiError like `decoded`."""
    try:
        return read_object(event.object, reading)
    except Malformed as problem:
        raise ApiError(NO_ANSWER, "Malformed", f"a watch sent an invalid object: {problem}") from problem


def refusal(code: int, headers: Mapping[str, str], text: bytes) -> ApiError:
    """The error for a response whose HTTP status is not success."""
    try:
        status = decoded(text, Reading())
    except ApiError:
        status = {}
    if status.get("kind") == "Status":
        return status_error(status, code, headers)
    return ApiError(
        code, _phrase(code), _shorten(text) or _phrase(code), retry_after=_seconds(headers.get("Retry-After"))
    )


def status_error(status: Object, code: int, headers: Mapping[str, str] | None = None) -> ApiError:
    """The error in a metav1.Status; `code` and `headers` provide values that it lacks."""
    details = mapping(status.get("details"))
    value = status.get("code")
    status_code = value if isinstance(value, int) and value else code
    retry_after = _seconds(details.get("retryAfterSeconds")) or _seconds((headers or {}).get("Retry-After"))
    return ApiError(
        status_code,
        string(status.get("reason")) or _phrase(status_code),
        string(status.get("message")) or _phrase(status_code),
        causes=tuple(
            Cause(string(cause.get("field")), string(cause.get("message"))) for cause in objects(details.get("causes"))
        ),
        retry_after=retry_after,
    )


def _seconds(value: JSON) -> float | None:
    # The header may also be a date, which the API server never sends.
    if isinstance(value, str):
        value = int(value) if value.isascii() and value.isdigit() else None
    return float(value) if isinstance(value, int) and value > 0 else None


def _phrase(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return "Unknown"


def _malformed(text: bytes) -> ApiError:
    return ApiError(NO_ANSWER, "Malformed", f"the answer is not a JSON object: {_shorten(text)}")


def _shorten(text: bytes) -> str:
    return " ".join(text[:_MAX_TEXT_CHARS].decode("utf-8", "replace").split())
