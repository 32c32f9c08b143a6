"""Parse the API server's responses. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from muster.api.document import JSON
from muster.api.json_fields import read_mapping, read_mappings, read_string
from muster.objects.kubernetes.errors import NO_ANSWER, ApiError, Cause
from muster.objects.kubernetes.json_parts import Malformed, Part, value_in
from muster.objects.kubernetes.kinds import Object, Reading
from muster.objects.kubernetes.reading import read_object

_MAX_TEXT_CHARS = 500


@dataclass(frozen=True)
class Page:
    """A page of a list. `items` are not parsed yet. `rest` is the token of the next page, or "" for the last page."""

    items: tuple[Part, ...]
    resource_version: str
    rest: str

    def objects(self, reading: Reading) -> Iterator[Object]:
        """Parse one item after the other, to save memory. Skips invalid items."""
        for item in self.items:
            try:
                yield read_object(item, reading)
            except Malformed:
                continue


@dataclass(frozen=True)
class WatchEvent:
    """An event of a watch. Its object is not parsed yet."""

    type: str
    object: Part


def parse_object(text: bytes, reading: Reading) -> Object:
    """Parse an object. Raises ApiError if the response is truncated, or not from an API server."""
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
    """Parse a page of a list. Raises ApiError."""
    items: tuple[Part, ...] = ()
    metadata: Object = {}
    try:
        for name, member in value_in(text).members():
            if name == "items" and member.is_list:
                items = tuple(member.elements())
            elif name == "metadata":
                metadata = read_mapping(member.value())
    except ValueError as problem:
        raise _malformed(text) from problem
    return Page(items, read_string(metadata.get("resourceVersion")), read_string(metadata.get("continue")))


def read_event(line: bytes) -> WatchEvent:
    """Parse a line of a watch. Raises ApiError."""
    kind = ""
    try:
        for name, member in value_in(line).members():
            if name == "type":
                kind = read_string(member.value())
            elif name == "object":
                return WatchEvent(kind, member)
    except ValueError as problem:
        raise _malformed(line) from problem
    raise _malformed(line)


def event_object(event: WatchEvent, reading: Reading) -> Object:
    """Parse the event's object. Raises ApiError."""
    try:
        return read_object(event.object, reading)
    except Malformed as problem:
        raise ApiError(NO_ANSWER, "Malformed", f"a watch sent an invalid object: {problem}") from problem


def response_error(code: int, headers: Mapping[str, str], text: bytes) -> ApiError:
    """Return the error for a response whose HTTP status is an error."""
    try:
        status = parse_object(text, Reading())
    except ApiError:
        status = {}
    if status.get("kind") == "Status":
        return status_error(status, code, headers)
    return ApiError(
        code, _phrase(code), _shorten(text) or _phrase(code), retry_after=_seconds(headers.get("Retry-After"))
    )


def status_error(status: Object, code: int, headers: Mapping[str, str] | None = None) -> ApiError:
    """Return the error in a metav1.Status. Values that it lacks come from `code` and `headers`."""
    details = read_mapping(status.get("details"))
    value = status.get("code")
    status_code = value if isinstance(value, int) and value else code
    retry_after = _seconds(details.get("retryAfterSeconds")) or _seconds((headers or {}).get("Retry-After"))
    return ApiError(
        status_code,
        read_string(status.get("reason")) or _phrase(status_code),
        read_string(status.get("message")) or _phrase(status_code),
        causes=tuple(
            Cause(read_string(cause.get("field")), read_string(cause.get("message")))
            for cause in read_mappings(details.get("causes"))
        ),
        retry_after=retry_after,
    )


def _seconds(value: JSON) -> float | None:
    # In HTTP, Retry-After may be a date, but the API server doesn't send dates.
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
