"""Client of the collector over HTTPS. It keeps one connection open and reads the token file before each request."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
import zlib
from typing import Any, Callable, List, Mapping, Optional, Tuple, Type, TypeVar
from urllib.parse import urlsplit

from muster_worker.contract import wire
from muster_worker.contract.schema import Command, Order, ReportAnswer

MAX_ANSWER_BYTES = 4 * 1024 * 1024
"""More than twice the size of the largest command: 10,000 nodes with IPv6 addresses."""

T = TypeVar("T")

MIN_READ_INTERVAL_SECONDS = 5.0
"""Minimum time between two reads of the plan for a new certificate authority."""

_TIMEOUT = 10.0
_CONNECT_TIMEOUT = 5.0
"""In seconds. It is short: after the leader's machine dies, the next leader has another address."""
_KEEPALIVE_IDLE_SECONDS, _KEEPALIVE_INTERVAL_SECONDS, _KEEPALIVE_COUNT = 5, 2, 3
"""With these values TCP keepalive closes a long poll to a dead machine after 11 s."""
_MAX_BACKOFF = 1.0
"""Maximum delay in seconds, before jitter. It is short, so that agents reach a new leader soon. An overloaded collector
sends a longer delay in Retry-After."""
_CONNECTION_ERRORS = (OSError, http.client.HTTPException, ValueError)  # ValueError: the token isn't ASCII
_UNKNOWN_POD_STATUSES = frozenset({401, 403})
_RETRY_LATER_STATUSES = frozenset({401, 403, 413, 400})


class CollectorUnavailable(Exception):
    """The collector sent no usable answer. `retry_after` is the Retry-After of its response, in seconds."""

    def __init__(self, reason: str, retry_after: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class TrustedAuthorities:
    """The only certificate authorities (PEM) that the client trusts.

    `read_authorities` returns the current authorities, or None.
    """

    def __init__(self, authorities: str, read_authorities: Callable[[], Optional[str]]) -> None:
        self.context = ssl.create_default_context(cadata=authorities)
        self._authorities = authorities
        self._read_authorities = read_authorities
        self._read_at = -MIN_READ_INTERVAL_SECONDS

    def renew(self, now: float) -> bool:
        """Read the authorities again at `now` (monotonic seconds), at most every 5 s. Returns whether they changed."""
        if now - self._read_at < MIN_READ_INTERVAL_SECONDS:
            return False
        self._read_at = now
        result = self._read_authorities()
        if result is None or result == self._authorities:
            return False
        try:
            self.context = ssl.create_default_context(cadata=result)
        except (ssl.SSLError, ValueError):
            return False  # the file may be half-written: keep the previous authorities
        self._authorities = result
        return True


class _Connection(http.client.HTTPSConnection):
    """Sends the header and the body of a request together, so that both sides handle one TLS record, not two."""

    def __init__(self, host: str, port: Optional[int], context: ssl.SSLContext) -> None:
        super().__init__(host, port, timeout=_CONNECT_TIMEOUT, context=context)
        self._parts: List[bytes] = []

    def send(self, data: Any) -> None:
        self._parts.append(data)

    def send_request(self, method: str, path: str, body: Optional[bytes], headers: Mapping[str, str]) -> None:
        """Send a request. Raises `OSError` or `HTTPException`."""
        self._parts = []
        self.request(method, path, body, headers)
        super().send(b"".join(self._parts))


class CollectorClient:
    """A client of the collector for one thread."""

    def __init__(self, url: str, trust: TrustedAuthorities, token_file: str) -> None:
        self._target = urlsplit(url)
        self._token_file = token_file
        self._trust = trust
        self._connection: Optional[_Connection] = None
        self.answered_at = time.monotonic()  # when the last answered request was sent

    def send_report(self, body: bytes) -> ReportAnswer:
        """Send a report. Raises `CollectorUnavailable`."""
        _, answer = self._request("POST", "/v1/report", body, _TIMEOUT)
        return _decode(ReportAnswer, answer)

    def poll_command(self, after: Optional[Order], wait: int) -> Optional[Command]:
        """Long-poll for a command that is later than `after`, for `wait` seconds. Returns None if there is none.

        Raises `CollectorUnavailable`.
        """
        query = f"wait={wait}" if after is None else f"after={'.'.join(map(str, after))}&wait={wait}"
        status, answer = self._request("GET", f"/v1/command?{query}", None, wait + _TIMEOUT)
        return None if status == http.client.NO_CONTENT else _decode(Command, answer)

    def _request(self, method: str, path: str, body: Optional[bytes], timeout: float) -> Tuple[int, bytes]:
        is_reused = self._connection is not None
        try:
            return self._exchange(method, path, body, timeout)
        except _CONNECTION_ERRORS as error:
            self._close()
            if not self._should_retry(error, is_reused=is_reused):
                raise CollectorUnavailable(f"{type(error).__name__}: {error}") from None
        try:
            return self._exchange(method, path, body, timeout)
        except _CONNECTION_ERRORS as error:
            self._close()
            raise CollectorUnavailable(f"{type(error).__name__}: {error}") from None

    def _should_retry(self, error: Exception, *, is_reused: bool) -> bool:
        # The operator may have a new certificate authority that the kubelet has already written to the plan.
        if isinstance(error, ssl.SSLCertVerificationError):
            return self._trust.renew(time.monotonic())
        # A server may close an idle connection at any time: try a new connection.
        return is_reused and not isinstance(error, TimeoutError)

    def _exchange(self, method: str, path: str, body: Optional[bytes], timeout: float) -> Tuple[int, bytes]:
        sent_at, connection = time.monotonic(), self._open(timeout)
        headers = {
            "Authorization": f"Bearer {self._read_token()}",
            "Content-Type": "application/json",
            "Accept-Encoding": "deflate",
        }
        connection.send_request(method, self._target.path.rstrip("/") + path, body, headers)
        response = connection.getresponse()
        answer = response.read(MAX_ANSWER_BYTES + 1)
        if len(answer) > MAX_ANSWER_BYTES:
            self._close()
            raise CollectorUnavailable("the collector's answer is too large")
        # A collector that refuses the token doesn't know this pod any more.
        if response.status not in _UNKNOWN_POD_STATUSES:
            self.answered_at = sent_at
        if response.getheader("Content-Encoding", "identity") == "deflate":
            answer = _inflate(answer)
        if response.status not in (http.client.OK, http.client.NO_CONTENT):
            retry_after = read_retry_after(response.status, response.getheader("Retry-After", ""))
            raise CollectorUnavailable(_describe_refusal(response.status, answer), retry_after)
        return response.status, answer

    def _open(self, timeout: float) -> _Connection:
        if self._connection is None or self._connection.sock is None:
            host, port = self._target.hostname or "", self._target.port
            context = self._trust.context
            connection = _Connection(host, port, context)
            connection.connect()
            enable_keepalive(connection.sock)
            self._connection = connection
        self._connection.sock.settimeout(timeout)
        return self._connection

    def _read_token(self) -> str:
        with open(self._token_file, encoding="ascii") as file:
            return file.read().strip()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def enable_keepalive(connection: socket.socket) -> None:
    """Let the kernel detect that the collector's machine has died."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    values = {
        "TCP_KEEPIDLE": _KEEPALIVE_IDLE_SECONDS,
        "TCP_KEEPINTVL": _KEEPALIVE_INTERVAL_SECONDS,
        "TCP_KEEPCNT": _KEEPALIVE_COUNT,
    }
    for name, value in values.items():
        if hasattr(socket, name):  # some systems lack these options
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _inflate(answer: bytes) -> bytes:
    decompressor = zlib.decompressobj()
    try:
        inflated = decompressor.decompress(answer, MAX_ANSWER_BYTES)
    except zlib.error as error:
        raise CollectorUnavailable(f"the collector's answer can't be inflated: {error}") from None
    if decompressor.unconsumed_tail or not decompressor.eof:
        raise CollectorUnavailable("the collector's answer is too large or incomplete")
    return inflated


def compute_backoff(failures: int, retry_after: float, jitter: float) -> float:
    """Return seconds to wait after this number of consecutive failures; `jitter` is in [0, 1)."""
    delay = min(_MAX_BACKOFF, 0.1 * 2.0 ** min(failures, 10)) * (0.5 + jitter)
    return max(delay, min(retry_after, 60.0) * (1.0 + jitter / 4.0))


def read_retry_after(status: int, header: str) -> float:
    """Return the seconds to wait after a refusal with this status and this Retry-After ("" without one)."""
    if header.isdigit():
        return float(header)
    # An immediate retry would get the same answer. A later retry may send a new token.
    return 1.0 if status in _RETRY_LATER_STATUSES else 0.0


def _describe_refusal(status: int, answer: bytes) -> str:
    text = answer[:200].decode("utf-8", "replace").strip()
    return f"the collector answered {status}{': ' if text else ''}{text}"


def _decode(cls: Type[T], answer: bytes) -> T:
    try:
        return wire.decode(cls, answer)
    except wire.MalformedDocument as error:
        raise CollectorUnavailable(f"the collector's answer can't be read: {error}") from None
