"""Filter the API server's responses for kopf: remove parts of jobs, and objects that would crash kopf's parser.

kopf uses `json.loads`, which raises RecursionError for deeply nested JSON that the API server accepts. This would end
kopf's watch, and after some retries kopf itself. So this module parses the responses first.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp

from muster.api.document import JSON
from muster.clients.kubernetes.lines import LineSplitter
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.json_parts import MalformedJson, Part, find_value
from muster.objects.kubernetes.kinds import Object, ParseOptions
from muster.objects.kubernetes.object_parser import parse_json, read_object
from muster.objects.kubernetes.responses import read_page, read_watch_event

DecodeObject = Callable[[Part], Object]
"""Decodes one object. Raises `MalformedJson`."""


class FilteredResponse(aiohttp.ClientResponse):
    """A response whose objects `decode_object` decodes. kopf calls `json()` or iterates over `content`."""

    decode_object: DecodeObject
    on_skip: Callable[[str], None]

    async def start(self, connection: Any) -> FilteredResponse:
        """Wait for the headers. A watch reads the body line by line."""
        await super().start(connection)
        self.content: Any = _FilteredContent(self.content, self._filter_line)
        return self

    async def json(self, **_: Any) -> Any:
        """Return the decoded body. Raises `JSONDecodeError`."""
        text = await self.read()
        try:
            is_list = any(name == "items" for name, _part in find_value(text).iterate_members())
            return self._decode_list(text) if is_list else parse_json(text)
        except (ValueError, ApiError) as problem:
            raise json.JSONDecodeError(str(problem), "", 0) from None

    def _decode_list(self, text: bytes) -> JSON:
        page = read_page(text)
        items: list[JSON] = []
        for item in page.items:
            try:
                items.append(dict(type(self).decode_object(item)))
            except MalformedJson as problem:
                type(self).on_skip(f"an object of a list: {problem}")
        metadata: JSON = {"resourceVersion": page.resource_version, "continue": page.continue_token}
        return {"metadata": metadata, "items": items}

    def _filter_line(self, line: bytes) -> bytes:
        """Filter one line of a watch. Return b"" for a malformed line."""
        try:
            event = read_watch_event(line)
            decode = _decode_whole if event.type in {"ERROR", "BOOKMARK"} else type(self).decode_object
            result = {"type": event.type, "object": dict(decode(event.object))}
        except (ApiError, MalformedJson) as problem:
            type(self).on_skip(f"an event of a watch: {problem}")
            return b""
        return json.dumps(result).encode() + b"\n"


class _FilteredContent:
    """The stream of a response, with filtered lines."""

    def __init__(self, stream: aiohttp.StreamReader, filter_line: Callable[[bytes], bytes]) -> None:
        self._stream = stream
        self._filter_line = filter_line

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def iter_chunked(self, _: int) -> AsyncIterator[bytes]:
        """Yield the filtered lines."""
        lines = LineSplitter()
        async for chunk in self._stream.iter_any():
            for line in lines.feed(chunk):
                if result := self._filter_line(line):
                    yield result


def make_response_class(decode: DecodeObject, on_skip: Callable[[str], None]) -> type[FilteredResponse]:
    """Return a session's response class. It decodes objects with `decode`, and reports skipped objects to `on_skip`."""

    class Response(FilteredResponse):
        """A response class that uses `decode` and `on_skip`."""

    Response.decode_object = staticmethod(decode)
    Response.on_skip = staticmethod(on_skip)
    return Response


def _decode_whole(part: Part) -> Object:
    return read_object(part, ParseOptions())
