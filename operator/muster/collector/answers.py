"""Send commands to agents: encoded once for all nodes of a job, and limited in number at a time.

All agents of a large job get the same Start, with all its peers: more than a mebibyte for 10,000 nodes. Writing it to
every connection at once would take gigabytes.
"""

import asyncio
import zlib
from collections import OrderedDict
from dataclasses import dataclass, field

from aiohttp import web

from muster.collector.door.refusal import Reason, Refused
from muster_worker.contract import wire
from muster_worker.contract.schema import Command

MAX_REMEMBERED = 8
"""Encoded commands that are kept: those of jobs that start or stop at the moment."""

DEFLATED_FROM_BYTES = 4096

LARGE_BYTES = 64 * 1024
"""More than a socket's buffer holds."""

MAX_LARGE = 16
"""Concurrent large responses to pods of one namespace."""

SEND_SECONDS = 15.0
"""The timeout of a response; a slower agent has to retry."""


@dataclass(frozen=True)
class Encoded:
    """A command's bytes, `deflated` if that is worthwhile."""

    plain: bytes
    deflated: bytes | None


@dataclass
class Answers:
    """Belongs to one event loop. `headers` are the headers of every response."""

    headers: dict[str, str]
    _encoded: OrderedDict[int, tuple[Command, Encoded]] = field(default_factory=OrderedDict)
    _slots: dict[str, "_Slots"] = field(default_factory=dict)

    async def send(self, request: web.BaseRequest, namespace: str, command: Command) -> web.StreamResponse:
        """Respond with `command`. Raises `Refused` (TooSlow) and closes the connection if the agent is too slow."""
        encoded = self.encode(command)
        accepted = "deflate" in request.headers.get("Accept-Encoding", "")
        body, headers = encoded.plain, self.headers
        if accepted and encoded.deflated is not None:
            body, headers = encoded.deflated, {**self.headers, "Content-Encoding": "deflate"}
        if len(body) <= LARGE_BYTES:
            return web.Response(body=body, headers=headers, content_type="application/json")
        slots = self._slots.setdefault(namespace, _Slots())
        slots.users += 1
        try:
            async with slots.free:
                return await _send_slowly(request, body, headers)
        finally:
            slots.users -= 1
            if not slots.users:
                del self._slots[namespace]

    def encode(self, command: Command) -> Encoded:
        """Encode a command; the same object is encoded only once."""
        key = id(command)
        if key not in self._encoded:
            plain = wire.encode(command)
            deflated = zlib.compress(plain) if len(plain) >= DEFLATED_FROM_BYTES else None
            self._encoded[key] = (command, Encoded(plain, deflated))
            if len(self._encoded) > MAX_REMEMBERED:
                self._encoded.popitem(last=False)
        self._encoded.move_to_end(key)
        return self._encoded[key][1]


@dataclass
class _Slots:
    free: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_LARGE))
    users: int = 0


async def _send_slowly(request: web.BaseRequest, body: bytes, headers: dict[str, str]) -> web.StreamResponse:
    response = web.StreamResponse(headers=headers)
    response.content_type = "application/json"
    response.content_length = len(body)
    view = memoryview(body)
    try:
        async with asyncio.timeout(SEND_SECONDS):
            await response.prepare(request)
            for begin in range(0, len(body), LARGE_BYTES):
                await response.write(view[begin : begin + LARGE_BYTES])
            await response.write_eof()
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
        raise Refused(Reason.TOO_SLOW) from None
    return response
