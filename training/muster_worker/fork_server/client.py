"""Starts a command in a process that the fork server forks. `rank/child.py` does the same with fork and exec."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the C module of `signal`
import _socket  # the C module of `socket`
import fcntl
import os
import struct
import time

from muster_worker.fork_server import request
from muster_worker.rank.child import FORWARDED_SIGNALS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import FrozenSet, Mapping, Optional, Sequence, Tuple


class ForkRefused(Exception):
    """The fork server can't fork this command: start it with fork and exec instead. The text is the reason."""


class StartInterrupted(Exception):
    """A signal ended the command before its process existed."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class ForkedChild:
    """A process that the fork server has forked. `start` returns it."""

    def __init__(self, connection: _Connection, pid: int, group: int) -> None:
        self._connection = connection
        self.pid = pid
        self._group = group  # the process group in which it started
        self.peak_bytes = 0  # maximum resident memory, after its end
        self.ended_at = 0.0  # monotonic time

    def wait(self, *, is_launcher: bool = False) -> int:
        """Forward signals until the process has ended. Returns its wait status, or SIGKILL's if the status is lost.

        The process is in another process group, so forward every signal. If the wrapper leads its process group, the
        launcher signals the whole group of the rank (see `child.Child.wait`). The agent signals a launcher only.
        """
        signals_group = os.getpgrp() == os.getpid() and not is_launcher
        while True:
            line = self._connection.read_line()
            if line is not None:
                if not line:
                    self.ended_at = time.monotonic()
                    return int(_signal.SIGKILL)
                status, kilobytes, ended_at = line.split()
                self.peak_bytes, self.ended_at = int(kilobytes) * 1024, float(ended_at)
                return int(status)
            number = self._connection.wait_for_signal()
            if number:
                try:
                    os.killpg(self._group, number) if signals_group else os.kill(self.pid, number)
                except ProcessLookupError:
                    pass


def start(
    path: str,
    command: Sequence[str],
    environment: Mapping[str, str],
    streams: Optional[Tuple[int, int]],
    signal_mask: FrozenSet[int],
) -> ForkedChild:
    """Run `command` in a process that the fork server at `path` forks. Call `block_signals` first.

    `streams` are as in `child.start`. `start` waits while the fork server still imports. Raises `ForkRefused`, and
    `StartInterrupted` if a signal that would have ended the command arrives during the wait.
    """
    connection = _Connection()
    try:
        connection.open(path)
        return _request_fork(connection, command, environment, streams, signal_mask)
    except OSError as error:
        connection.close()
        raise ForkRefused(f"the fork server does not answer: {error.strerror}") from error
    except ForkRefused:
        connection.close()
        raise


def _request_fork(
    connection: _Connection,
    command: Sequence[str],
    environment: Mapping[str, str],
    streams: Optional[Tuple[int, int]],
    signal_mask: FrozenSet[int],
) -> ForkedChild:
    """Raises `ForkRefused`, `StartInterrupted` and `OSError`."""
    # Wait before sending: unread descriptors in the socket would keep the pipes open if this process ended.
    _await_line(connection)
    fds = request.list_inherited_fds()
    if len(fds) + 4 > request.MAX_FDS:
        raise ForkRefused(f"it inherits {len(fds)} descriptors")
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    null_fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    standard_fds = (0, 1, 2) if streams is None else (null_fd, *streams)
    connection.send(request.encode(command, environment, signal_mask, fds), (folder, *standard_fds, *fds))
    os.close(folder)
    os.close(null_fd)
    kind, _, text = _await_line(connection).partition(" ")
    if kind != "pid":
        raise ForkRefused(text)
    pid, group = text.split()
    return ForkedChild(connection, int(pid), int(group))


def _await_line(connection: _Connection) -> str:
    """Wait for the fork server's next line. Raises `ForkRefused` if it has ended, and `StartInterrupted`."""
    while True:
        line = connection.read_line()
        if line == b"":
            raise ForkRefused("the fork server has ended")
        if line is not None:
            return line.decode("utf-8", "replace")
        number = connection.wait_for_signal()
        if number not in (0, _signal.SIGCONT) and _signal.getsignal(number) != _signal.SIG_IGN:
            raise StartInterrupted(number)


class _Connection:
    """A connection to the fork server. The kernel sends this process SIGIO when the connection has data to read."""

    def __init__(self) -> None:
        self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        self._buffer = b""
        self._is_closed = False

    def open(self, path: str) -> None:
        """Connect to the fork server at `path`. Raises `OSError`."""
        _signal.pthread_sigmask(_signal.SIG_BLOCK, {_signal.SIGIO})
        self._socket.connect(path)
        descriptor = self._socket.fileno()
        fcntl.fcntl(descriptor, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC)

    def send(self, data: bytes, fds: Sequence[int]) -> None:
        ancillary = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack(f"{len(fds)}i", *fds))]
        self._socket.setblocking(True)
        unsent = data[self._socket.sendmsg([data], ancillary) :]
        if unsent:
            self._socket.sendall(unsent)
        self._socket.setblocking(False)

    def read_line(self) -> Optional[bytes]:
        """Return the next line without its newline, b"" after the last line; None if no whole line has arrived."""
        while not self._is_closed and b"\n" not in self._buffer:
            try:
                data = self._socket.recv(4096)
            except BlockingIOError:
                return None
            except OSError:
                data = b""
            self._is_closed = not data
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def wait_for_signal(self) -> int:
        """Wait for a forwarded signal and return its number; return 0 if there may be data to read."""
        number = _signal.sigwaitinfo(FORWARDED_SIGNALS | {_signal.SIGIO}).si_signo
        return 0 if number == _signal.SIGIO else number

    def close(self) -> None:
        """Close the connection, so that the rank's parent exits. Take a pending SIGIO, which would end this process."""
        self._socket.close()
        _signal.sigtimedwait({_signal.SIGIO}, 0)
