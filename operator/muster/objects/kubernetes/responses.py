"""Parse the API server's responses. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from muster.api.document import JSON
from muster.api.json_fields import read_mapping, read_mappings, read_string
from muster.objects.kubernetes.errors import NO_RESPONSE, ApiError, Cause
from muster.objects.kubernetes.json_parts import MalformedJson, Part, find_value
from muster.objects.kubernetes.kinds import Object, ParseOptions
from muster.objects.kubernetes.object_parser import read_object

_MAX_TEXT_CHARS = 500


@dataclass(frozen=True)
class Page:
    """A page of a list.

    `items` are not parsed yet. `continue_token` is the token of the next page, or "" for the last page.
    """

    items: tuple[Part, ...]
    resource_version: str
    continue_token: str

    def parse_items(self, parse_options: ParseOptions) -> Iterator[Object]:
        """Parse the items one by one, to save memory. Skip invalid items."""
        for item in self.items:
            try:
                yield read_object(item, parse_options)
            except MalformedJson:
                continue


@dataclass(frozen=True)
class WatchEvent:
    """An event of a watch. Its object is not parsed yet."""

    type: str
    object: Part


def parse_object(text: bytes, parse_options: ParseOptions) -> Object:
    """Parse an object. Raises ApiError if the response is truncated, or not from an API server."""
    try:
        part = find_value(text)
        object_ = read_object(part, parse_options)
        is_complete = not text[part.end :].strip()
    except MalformedJson as problem:
        raise _build_malformed_error(text) from problem
    if not is_complete:
        raise _build_malformed_error(text)
    return object_


def read_page(text: bytes) -> Page:
    """Parse a page of a list. Raises ApiError."""
    items: tuple[Part, ...] = ()
    metadata: Object = {}
    try:
        for name, member in find_value(text).iterate_members():
            if name == "items" and member.is_list:
                items = tuple(member.iterate_elements())
            elif name == "metadata":
                metadata = read_mapping(member.parse())
    except ValueError as problem:
        raise _build_malformed_error(text) from problem
    return Page(items, read_string(metadata.get("resourceVersion")), read_string(metadata.get("continue")))


def read_watch_event(line: bytes) -> WatchEvent:
    """Parse a line of a watch. Raises ApiError."""
    event_type = ""
    try:
        for name, member in find_value(line).iterate_members():
            if name == "type":
                event_type = read_string(member.parse())
            elif name == "object":
                return WatchEvent(event_type, member)
    except ValueError as problem:
        raise _build_malformed_error(line) from problem
    raise _build_malformed_error(line)


def read_event_object(event: WatchEvent, parse_options: ParseOptions) -> Object:
    """Parse the event's object. Raises ApiError."""
    try:
        return read_object(event.object, parse_options)
    except MalformedJson as problem:
        raise ApiError(NO_RESPONSE, "Malformed", f"a watch sent an invalid object: {problem}") from problem


def build_response_error(code: int, headers: Mapping[str, str], text: bytes) -> ApiError:
    """Return the error for a response whose HTTP status is an error."""
    try:
        status = parse_object(text, ParseOptions())
    except ApiError:
        status = {}
    if status.get("kind") == "Status":
        return build_status_error(status, code, headers)
    return ApiError(
        code,
        _get_status_phrase(code),
        _shorten(text) or _get_status_phrase(code),
        retry_after=_parse_seconds(headers.get("Retry-After")),
    )


def build_status_error(status: Object, code: int, headers: Mapping[str, str] | None = None) -> ApiError:
    """Return the error in a metav1.Status. Use `code` and `headers` for the values that it lacks."""
    details = read_mapping(status.get("details"))
    value = status.get("code")
    status_code = value if isinstance(value, int) and value else code
    retry_after = _parse_seconds(details.get("retryAfterSeconds")) or _parse_seconds((headers or {}).get("Retry-After"))
    return ApiError(
        status_code,
        read_string(status.get("reason")) or _get_status_phrase(status_code),
        read_string(status.get("message")) or _get_status_phrase(status_code),
        causes=tuple(
            Cause(read_string(cause.get("field")), read_string(cause.get("message")))
            for cause in read_mappings(details.get("causes"))
        ),
        retry_after=retry_after,
    )


def _parse_seconds(value: JSON) -> float | None:
    # In HTTP, Retry-After may be a date, but the API server doesn't send dates.
    if isinstance(value, str):
        value = int(value) if value.isascii() and value.isdigit() else None
    return float(value) if isinstance(value, int) and value > 0 else None


def _get_status_phrase(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return "Unknown"


def _build_malformed_error(text: bytes) -> ApiError:
    return ApiError(NO_RESPONSE, "Malformed", f"the response is not a JSON object: {_shorten(text)}")


def _shorten(text: bytes) -> str:
    return " ".join(text[:_MAX_TEXT_CHARS].decode("utf-8", "replace").split())
