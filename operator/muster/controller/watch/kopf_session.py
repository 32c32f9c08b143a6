"""Filter the API server's responses for kopf: remove parts of jobs, and objects that would crash kopf's parser.

kopf uses `json.loads`, which raises RecursionError for deeply nested JSON that the API server accepts. Then kopf's
watch ends, and after some retries kopf itself. So this module parses the responses first.
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

Read = Callable[[Part], Object]
"""Decodes one object. Raises `MalformedJson`."""


class ReadResponse(aiohttp.ClientResponse):
    """A response whose objects `read_object` decodes. kopf calls `json()` or iterates over `content`."""

    read_object: Read
    skip: Callable[[str], None]

    async def start(self, connection: Any) -> ReadResponse:
        """Wait for the headers. A watch reads the body line by line."""
        await super().start(connection)
        self.content: Any = _Content(self.content, self._filter_line)
        return self

    async def json(self, **_: Any) -> Any:
        """Return the decoded body. Raises `JSONDecodeError`."""
        text = await self.read()
        try:
            is_list = any(name == "items" for name, _part in find_value(text).iterate_members())
            return self._list(text) if is_list else parse_json(text)
        except (ValueError, ApiError) as problem:
            raise json.JSONDecodeError(str(problem), "", 0) from None

    def _list(self, text: bytes) -> JSON:
        page = read_page(text)
        items: list[JSON] = []
        for item in page.items:
            try:
                items.append(dict(type(self).read_object(item)))
            except MalformedJson as problem:
                type(self).skip(f"an object of a list: {problem}")
        metadata: JSON = {"resourceVersion": page.resource_version, "continue": page.continue_token}
        return {"metadata": metadata, "items": items}

    def _filter_line(self, line: bytes) -> bytes:
        """Filter one line of a watch. Return b"" for a malformed line."""
        try:
            event = read_watch_event(line)
            read = _read_plain if event.type in {"ERROR", "BOOKMARK"} else type(self).read_object
            result = {"type": event.type, "object": dict(read(event.object))}
        except (ApiError, MalformedJson) as problem:
            type(self).skip(f"an event of a watch: {problem}")
            return b""
        return json.dumps(result).encode() + b"\n"


class _Content:
    """The stream of a response, with filtered lines."""

    def __init__(self, stream: aiohttp.StreamReader, line: Callable[[bytes], bytes]) -> None:
        self._stream = stream
        self._filter_line = line

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def iter_chunked(self, _: int) -> AsyncIterator[bytes]:
        """Yield the filtered lines."""
        lines = LineSplitter()
        async for chunk in self._stream.iter_any():
            for line in lines.feed(chunk):
                if result := self._filter_line(line):
                    yield result


def response_class(read: Read, skip: Callable[[str], None]) -> type[ReadResponse]:
    """Return a response class for a session: `read` decodes objects, `skip` gets the error of each skipped object."""

    class Response(ReadResponse):
        """A response class that uses `read` and `skip`."""

    Response.read_object = staticmethod(read)
    Response.skip = staticmethod(skip)
    return Response


def _read_plain(part: Part) -> Object:
    return read_object(part, ParseOptions())
