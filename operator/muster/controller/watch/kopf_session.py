"""What kopf gets to see of the API server's answers: jobs in their reduced form, and nothing that its parser dies of.

kopf parses with `json.loads`, which raises RecursionError for a text that the API server takes; that ends the watch,
and after some tries the operator. So the answers are read here first.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp

from muster.api.document import JSON
from muster.clients.kubernetes.lines import Lines
from muster.objects.kubernetes.answers import read_event, read_page
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.json_parts import Malformed, Part, value_in
from muster.objects.kubernetes.kinds import Object, Reading
from muster.objects.kubernetes.reading import parsed, read_object

Read = Callable[[Part], Object]
"""Gives an object as it is handed on. Raises `Malformed`."""


class ReadResponse(aiohttp.ClientResponse):
    """An answer whose objects are read by `read`; kopf asks for `json()`, or iterates over `content`."""

    read_object: Read
    skip: Callable[[str], None]

    async def start(self, connection: Any) -> ReadResponse:
        """Wait for the head. What follows is given line by line to who watches."""
        await super().start(connection)
        self.content: Any = _Content(self.content, self._line)
        return self

    async def json(self, **_: Any) -> Any:
        """The answer. Raises `JSONDecodeError`."""
        text = await self.read()
        try:
            is_list = any(name == "items" for name, _part in value_in(text).members())
            return self._list(text) if is_list else parsed(text)
        except (ValueError, ApiError) as problem:
            raise json.JSONDecodeError(str(problem), "", 0) from None

    def _list(self, text: bytes) -> JSON:
        page = read_page(text)
        items: list[JSON] = []
        for item in page.items:
            try:
                items.append(dict(type(self).read_object(item)))
            except Malformed as problem:
                type(self).skip(f"an object of a list: {problem}")
        metadata: JSON = {"resourceVersion": page.resource_version, "continue": page.rest}
        return {"metadata": metadata, "items": items}

    def _line(self, line: bytes) -> bytes:
        """A line of a watch as kopf gets it; nothing for one that can't be read."""
        try:
            event = read_event(line)
            read = _plainly if event.type in {"ERROR", "BOOKMARK"} else type(self).read_object
            result = {"type": event.type, "object": dict(read(event.object))}
        except (ApiError, Malformed) as problem:
            type(self).skip(f"an event of a watch: {problem}")
            return b""
        return json.dumps(result).encode() + b"\n"


class _Content:
    """A response's stream. All but what is iterated over is the stream's own matter."""

    def __init__(self, stream: aiohttp.StreamReader, line: Callable[[bytes], bytes]) -> None:
        self._stream = stream
        self._line = line

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def iter_chunked(self, _: int) -> AsyncIterator[bytes]:
        """Line by line."""
        lines = Lines()
        async for chunk in self._stream.iter_any():
            for line in lines.feed(chunk):
                if result := self._line(line):
                    yield result


def response_class(read: Read, skip: Callable[[str], None]) -> type[ReadResponse]:
    """For a session: its answers' objects are read by `read`; `skip` hears why something is left out."""

    class Response(ReadResponse):
        """With what it is made of."""

    Response.read_object = staticmethod(read)
    Response.skip = staticmethod(skip)
    return Response


def _plainly(part: Part) -> Object:
    return read_object(part, Reading())
