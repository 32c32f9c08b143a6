"""A keep-alive HTTP connection over TLS that costs little, so that one process can have tens of thousands of them."""

import asyncio
import re
import socket
import ssl
import zlib
from dataclasses import dataclass
from http import HTTPStatus

from muster_worker.agent.collector_client import enable_keepalive

_CHUNK_BYTES = 64 * 1024
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_END_OF_HEAD = b"\r\n\r\n"


@dataclass(frozen=True)
class Target:
    """The collector: its address, its name in the certificate, and the trusted authorities."""

    address: tuple[str, int]
    name: str
    context: ssl.SSLContext


@dataclass(frozen=True)
class Response:
    """A response. `retry_after` is "" if the header is missing."""

    status: int
    body: bytes
    retry_after: str
    closes: bool


class Connection:
    """A connection on which one request at a time is sent. Any error closes it."""

    __slots__ = ("_buffer", "_error", "_loop", "_socket", "_waiter")

    def __init__(self, tls_socket: ssl.SSLSocket) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = tls_socket
        self._buffer = b""
        self._error: OSError | None = None
        self._waiter: asyncio.Future[Response] | None = None

    @classmethod
    async def open(cls, target: Target, source: str, seconds: float) -> "Connection":
        """Connect from the address `source`. Raises `OSError`, also `TimeoutError`."""
        plain = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            plain.setblocking(False)
            plain.bind((source, 0))
            async with asyncio.timeout(seconds):
                await asyncio.get_running_loop().sock_connect(plain, target.address)
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                enable_keepalive(plain)
                tls_socket = target.context.wrap_socket(
                    plain, server_hostname=target.name, do_handshake_on_connect=False
                )
                await _handshake(tls_socket)
        except BaseException:
            plain.close()
            raise
        connection = cls(tls_socket)
        connection._loop.add_reader(tls_socket.fileno(), connection._read)
        return connection

    async def exchange(self, request: bytes, seconds: float) -> Response:
        """Send a request and wait for the response. Raises `OSError`, also `TimeoutError`."""
        if self._error is not None:
            raise self._error
        self._waiter = self._loop.create_future()
        try:
            async with asyncio.timeout(seconds):
                await self._send(request)
                response = await self._waiter
        except BaseException:
            self.close()
            raise
        if response.closes:
            self.close()
        return response

    @property
    def is_open(self) -> bool:
        """Whether another request can be sent."""
        return self._error is None

    def close(self) -> None:
        """Close the connection. May be called twice."""
        self._fail(ConnectionAbortedError("this side has closed the connection"))

    async def _send(self, request: bytes) -> None:
        remaining = memoryview(request)
        while remaining:
            try:
                remaining = remaining[self._socket.send(remaining) :]
            except ssl.SSLWantWriteError:
                await _wait_until_writable(self._socket)

    def _read(self) -> None:
        try:
            while chunk := self._socket.recv(_CHUNK_BYTES):
                self._buffer += chunk
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        except OSError as error:
            self._fail(error)
            return
        else:
            self._fail(ConnectionResetError("the collector has closed the connection"))
            return
        response = self._take_response()
        if response is not None and self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(response)

    def _take_response(self) -> Response | None:
        end = self._buffer.find(_END_OF_HEAD)
        if end < 0:
            return None
        head, start = self._buffer[:end], end + len(_END_OF_HEAD)
        length = _LENGTH.search(head)
        total = start + (0 if length is None else int(length[1]))
        if len(self._buffer) < total:
            return None
        body, self._buffer = self._buffer[start:total], self._buffer[total:]
        headers = head.lower()
        if b"\r\ncontent-encoding: deflate" in headers:
            body = zlib.decompress(body)
        _, _, after = headers.partition(b"\r\nretry-after: ")
        closes = b"\r\nconnection: close" in headers
        return Response(int(head[9:12]), body, after.partition(b"\r\n")[0].decode("ascii"), closes)

    def _fail(self, error: OSError) -> None:
        if self._error is not None:
            return
        self._error = error
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)
            # A waiter that no task awaits any more must not log its exception.
            self._waiter.exception()


async def _handshake(tls_socket: ssl.SSLSocket) -> None:
    while True:
        try:
            tls_socket.do_handshake()
        except ssl.SSLWantReadError:
            await _wait_until_readable(tls_socket)
        except ssl.SSLWantWriteError:
            await _wait_until_writable(tls_socket)
        else:
            return


async def _wait_until_readable(waiting: socket.socket) -> None:
    loop, future = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()
    loop.add_reader(waiting.fileno(), _complete, future)
    try:
        await future
    finally:
        loop.remove_reader(waiting.fileno())


async def _wait_until_writable(waiting: socket.socket) -> None:
    loop, future = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()
    loop.add_writer(waiting.fileno(), _complete, future)
    try:
        await future
    finally:
        loop.remove_writer(waiting.fileno())


def _complete(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def is_success(response: Response) -> bool:
    """Whether the collector has accepted the request."""
    return response.status in (HTTPStatus.OK, HTTPStatus.NO_CONTENT)
