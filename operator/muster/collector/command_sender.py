"""Send commands to agents. Encode each command once for all nodes, and limit concurrent large responses.

A Start command lists all nodes: for 10,000 nodes it has more than 1 MiB. Writing it to all connections at once would
take gigabytes.
"""

import asyncio
import zlib
from collections import OrderedDict
from dataclasses import dataclass, field

from aiohttp import web

from muster.collector.server.refusal import RefusalReason, RequestRefused
from muster_worker.contract import wire
from muster_worker.contract.schema import Command

MAX_CACHED_COMMANDS = 8
"""The maximum number of encoded commands in the cache: enough for the jobs that are starting or stopping."""

MIN_DEFLATED_BYTES = 4096

LARGE_BYTES = 64 * 1024
"""A response above this size doesn't fit into a socket's buffer."""

MAX_LARGE_RESPONSES = 16
"""The maximum number of concurrent large responses to pods of one namespace."""

SEND_SECONDS = 15.0
"""The timeout of a large response; a slower agent has to retry."""


@dataclass(frozen=True)
class EncodedCommand:
    """A command's bytes; `deflated` is None for a small command."""

    plain: bytes
    deflated: bytes | None


@dataclass
class CommandSender:
    """Sends commands as responses with `headers`. Only one event loop may use this."""

    headers: dict[str, str]
    _encoded: OrderedDict[int, tuple[Command, EncodedCommand]] = field(default_factory=OrderedDict)
    _slots: dict[str, "_Slots"] = field(default_factory=dict)

    async def send(self, request: web.BaseRequest, namespace: str, command: Command) -> web.StreamResponse:
        """Respond with `command`. Raises `RequestRefused` and closes the connection if the agent is too slow."""
        encoded = self.encode(command)
        accepts_deflate = "deflate" in request.headers.get("Accept-Encoding", "")
        body, headers = encoded.plain, self.headers
        if accepts_deflate and encoded.deflated is not None:
            body, headers = encoded.deflated, {**self.headers, "Content-Encoding": "deflate"}
        if len(body) <= LARGE_BYTES:
            return web.Response(body=body, headers=headers, content_type="application/json")
        slots = self._slots.setdefault(namespace, _Slots())
        slots.users += 1
        try:
            async with slots.semaphore:
                return await _send_slowly(request, body, headers)
        finally:
            slots.users -= 1
            if not slots.users:
                del self._slots[namespace]

    def encode(self, command: Command) -> EncodedCommand:
        """Encode a command; the same object is encoded only once."""
        key = id(command)
        if key not in self._encoded:
            plain = wire.encode(command)
            deflated = zlib.compress(plain) if len(plain) >= MIN_DEFLATED_BYTES else None
            self._encoded[key] = (command, EncodedCommand(plain, deflated))
            if len(self._encoded) > MAX_CACHED_COMMANDS:
                self._encoded.popitem(last=False)
        self._encoded.move_to_end(key)
        return self._encoded[key][1]


@dataclass
class _Slots:
    semaphore: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_LARGE_RESPONSES))
    users: int = 0


async def _send_slowly(request: web.BaseRequest, body: bytes, headers: dict[str, str]) -> web.StreamResponse:
    response = web.StreamResponse(headers=headers)
    response.content_type = "application/json"
    response.content_length = len(body)
    view = memoryview(body)
    try:
        async with asyncio.timeout(SEND_SECONDS):
            await response.prepare(request)
            for start in range(0, len(body), LARGE_BYTES):
                await response.write(view[start : start + LARGE_BYTES])
            await response.write_eof()
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
        raise RequestRefused(RefusalReason.TOO_SLOW) from None
    return response
