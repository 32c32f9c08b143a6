"""The collector over HTTPS: one connection kept open, a token read anew for each request."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
import zlib
from typing import Callable, Optional, Tuple, Type, TypeVar
from urllib.parse import urlsplit

from muster_worker.contract import wire
from muster_worker.contract.schema import Command, Order, ReportAnswer

MAX_ANSWER_BYTES = 4 * 1024 * 1024
"""A command for a job of 10,000 nodes, with every peer's IPv6 address, has less than half of it."""

T = TypeVar("T")

READ_AGAIN_SECONDS = 5.0
"""Between two looks at the plan for other authorities."""

_TIMEOUT = 10.0
_CONNECT_TIMEOUT = 5.0
"""Seconds: where a leader was on a machine that is gone, nothing answers; the next one is at another address."""
_SILENT_SECONDS, _PROBE_SECONDS, _PROBES = 5, 2, 3
"""TCP's own questions: a leader whose machine is gone in the middle of a long poll is given up after 11 s."""
_MAX_PAUSE = 1.0
"""Seconds, before chance: a new leader is to be found soon. One that is asked by too many says when to come back."""
_BROKEN = (OSError, http.client.HTTPException, ValueError)  # ValueError: the token can't be a header's value
_UNHURRIED = frozenset({401, 403, 413, 400})


class Unavailable(Exception):
    """The collector gave no usable answer. `wait` is how long it asked to be left alone, in seconds."""

    def __init__(self, why: str, wait: float = 0.0) -> None:
        super().__init__(why)
        self.wait = wait


class Trust:
    """The only authorities that are trusted, PEM. `read` gives them as they are by now, None when nobody knows."""

    def __init__(self, authorities: str, read: Callable[[], Optional[str]]) -> None:
        self.context = ssl.create_default_context(cadata=authorities)
        self._known = authorities
        self._read = read
        self._read_at = -READ_AGAIN_SECONDS

    def renew(self, now: float) -> bool:
        """Look for others at `now` (monotonic seconds), unless that was done a moment ago; whether there are."""
        if now - self._read_at < READ_AGAIN_SECONDS:
            return False
        self._read_at = now
        result = self._read()
        if result is None or result == self._known:
            return False
        try:
            self.context = ssl.create_default_context(cadata=result)
        except (ssl.SSLError, ValueError):
            return False  # half a file is not worth what is known
        self._known = result
        return True


class CollectorClient:
    """One conversation with the collector; not for more than one thread."""

    def __init__(self, url: str, trust: Trust, token_file: str) -> None:
        self._target = urlsplit(url)
        self._token_file = token_file
        self._trust = trust
        self._connection: Optional[http.client.HTTPSConnection] = None

    def report(self, body: bytes) -> ReportAnswer:
        """Send a report. Raises `Unavailable`."""
        _, answer = self._request("POST", "/v1/report", body, _TIMEOUT)
        return _decode(ReportAnswer, answer)

    def command(self, after: Optional[Order], wait: int) -> Optional[Command]:
        """Wait up to `wait` seconds for a command above `after`; None when there is none. Raises `Unavailable`."""
        query = f"wait={wait}" if after is None else f"after={'.'.join(map(str, after))}&wait={wait}"
        status, answer = self._request("GET", f"/v1/command?{query}", None, wait + _TIMEOUT)
        return None if status == http.client.NO_CONTENT else _decode(Command, answer)

    def _request(self, method: str, path: str, body: Optional[bytes], timeout: float) -> Tuple[int, bytes]:
        reused = self._connection is not None
        try:
            return self._exchange(method, path, body, timeout)
        except _BROKEN as error:
            self._close()
            if not self._is_worth_another(error, reused=reused):
                raise Unavailable(f"{type(error).__name__}: {error}") from None
        try:
            return self._exchange(method, path, body, timeout)
        except _BROKEN as error:
            self._close()
            raise Unavailable(f"{type(error).__name__}: {error}") from None

    def _is_worth_another(self, error: Exception, *, reused: bool) -> bool:
        # the operator may have a new authority, and the kubelet has put it into the plan
        if isinstance(error, ssl.SSLCertVerificationError):
            return self._trust.renew(time.monotonic())
        # a server may close an idle connection at any moment; that says nothing about a new one
        return reused and not isinstance(error, TimeoutError)

    def _exchange(self, method: str, path: str, body: Optional[bytes], timeout: float) -> Tuple[int, bytes]:
        connection = self._open(timeout)
        headers = {
            "Authorization": f"Bearer {self._token()}",
            "Content-Type": "application/json",
            "Accept-Encoding": "deflate",
        }
        connection.request(method, self._target.path.rstrip("/") + path, body, headers)
        response = connection.getresponse()
        answer = response.read(MAX_ANSWER_BYTES + 1)
        if len(answer) > MAX_ANSWER_BYTES:
            self._close()
            raise Unavailable("the collector's answer is too large")
        if response.getheader("Content-Encoding", "identity") == "deflate":
            answer = _inflate(answer)
        if response.status not in (http.client.OK, http.client.NO_CONTENT):
            raise Unavailable(_refusal(response.status, answer), _retry_after(response))
        return response.status, answer

    def _open(self, timeout: float) -> http.client.HTTPSConnection:
        if self._connection is None or self._connection.sock is None:
            host, port = self._target.hostname or "", self._target.port
            context = self._trust.context
            connection = http.client.HTTPSConnection(host, port, timeout=_CONNECT_TIMEOUT, context=context)
            connection.connect()
            _ask_whether_it_is_there(connection.sock)
            self._connection = connection
        self._connection.sock.settimeout(timeout)
        return self._connection

    def _token(self) -> str:
        with open(self._token_file, encoding="ascii") as file:
            return file.read().strip()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _ask_whether_it_is_there(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    values = {"TCP_KEEPIDLE": _SILENT_SECONDS, "TCP_KEEPINTVL": _PROBE_SECONDS, "TCP_KEEPCNT": _PROBES}
    for name, value in values.items():
        if hasattr(socket, name):  # not every system's name for it
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _inflate(answer: bytes) -> bytes:
    inflating = zlib.decompressobj()
    try:
        whole = inflating.decompress(answer, MAX_ANSWER_BYTES)
    except zlib.error as error:
        raise Unavailable(f"the collector's answer can't be inflated: {error}") from None
    if inflating.unconsumed_tail or not inflating.eof:
        raise Unavailable("the collector's answer is too large, or only a part of it came")
    return whole


def backoff(failures: int, wait: float, chance: float) -> float:
    """Seconds to wait after so many failures in a row; `chance` in [0, 1) spreads the agents of a large job."""
    own = min(_MAX_PAUSE, 0.1 * 2.0 ** min(failures, 10)) * (0.5 + chance)
    return max(own, min(wait, 60.0) * (1.0 + chance / 4.0))


def _retry_after(response: http.client.HTTPResponse) -> float:
    text = response.getheader("Retry-After", "")
    if text.isdigit():
        return float(text)
    # asking again at once can't change such an answer; a new token may
    return 1.0 if response.status in _UNHURRIED else 0.0


def _refusal(status: int, answer: bytes) -> str:
    said = answer[:200].decode("utf-8", "replace").strip()
    return f"the collector answered {status}{': ' if said else ''}{said}"


def _decode(cls: Type[T], answer: bytes) -> T:
    try:
        return wire.decode(cls, answer)
    except wire.Malformed as error:
        raise Unavailable(f"the collector's answer can't be read: {error}") from None
