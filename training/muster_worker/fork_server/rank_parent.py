"""The parent process of a forked rank. The wrapper can't be its parent, because the fork server forks the rank."""

from __future__ import annotations

import array
import fcntl
import os
import select
import signal
import socket
import time

from muster_worker.fork_server import request, spares
from muster_worker.fork_server.forked_rank import become_rank
from muster_worker.fork_server.refusals import ServerState, find_refusal, remove_hook_variables
from muster_worker.fork_server.variables import find_moved_code
from muster_worker.rank import child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, List, Optional, Tuple

_MAX_FAILURE_BYTES = 1024
_STANDARD_FDS = 4
"""The working directory and the standard streams come before the other descriptors of a request."""


class RequestSource:
    """Where the processes get their request: from `connection`, or as a spare from the next one to the listener."""

    def __init__(
        self, listener: socket.socket, connection: Optional[socket.socket], spare: Optional[spares.Spare]
    ) -> None:
        """Either `connection` or `spare` is None."""
        self._listener = listener
        self._connection = connection
        self.spare = spare

    def take(self) -> socket.socket:
        """Return the connection of the request. A spare waits for it."""
        connection = self._connection or self._listener.accept()[0]
        if self.spare is not None:
            self.spare.end()
            self.spare.release_pipe()
        self._listener.close()
        return connection

    def leave(self) -> None:
        """Close the descriptors: the other process of the pair takes the request."""
        if self._connection is not None:
            self._connection.close()
        if self.spare is not None:
            self.spare.release_pipe()
        self._listener.close()


def serve_request(source: RequestSource, server: ServerState) -> Callable[[], None]:
    """Fork the process that becomes the rank of a request, and wait for its end. Returns only in the rank."""
    if source.spare is not None:
        source.spare.begin()
    os.setsid()
    # Like the wrapper, ignore signals to the rank's process group: they are for the rank and must not end this process.
    signal.pthread_sigmask(signal.SIG_BLOCK, child.FORWARDED_SIGNALS | {signal.SIGCHLD})
    parent = os.getpid()
    own_end, rank_end = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        own_end.close()
        child.die_with_parent()
        if os.getppid() != parent:
            os._exit(128 + signal.SIGKILL)
        return _serve_as_rank(source, server, rank_end)
    rank_end.close()
    source.leave()
    _watch_rank(own_end, pid, source.spare)
    os._exit(0)


def _watch_rank(rank_end: socket.socket, pid: int, spare: Optional[spares.Spare]) -> None:
    """Answer the request when the child has become the rank, and wait for its end."""
    _, fds = _receive_message(rank_end)
    if not fds:
        return  # the child has refused the request, or its wrapper has ended
    if spare is not None:
        spare.end()
        child.survive_parent()  # ranks go on if the fork server ends
    connection = socket.socket(fileno=fds[0])
    message = rank_end.recv(_MAX_FAILURE_BYTES)  # empty when the process is the rank
    rank_end.close()
    if message:
        _answer(connection, f"refused the fork failed: {message.decode('utf-8', 'replace')}")
        return
    _answer(connection, f"pid {pid} {os.getpid()}")
    _wait(connection, pid)


def _serve_as_rank(source: RequestSource, server: ServerState, parent_end: socket.socket) -> Callable[[], None]:
    """Receive a request, and become its rank. If the fork server must not fork it, answer with the reason, and exit."""
    connection = source.take()
    try:
        _answer(connection, "ready")
        rank_request, fds = _receive_request(connection)
        refusal = server.refusal or find_refusal(rank_request, os.readlink(f"/proc/self/fd/{fds[0]}"), server)
        if refusal is not None:
            _answer(connection, f"refused {refusal}")
            os._exit(0)
        if select.select([connection], [], [], 0)[0]:
            os._exit(0)  # the wrapper has ended
        # Let the parent answer: it learns from the end of this socket that the process is the rank.
        message = _move_fd(parent_end, highest_fd=max((2, *rank_request.fds)))
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [connection.fileno()]))]
        message.sendmsg([b"!"], ancillary)
        connection.close()
    except Exception as error:  # noqa: BLE001 - the rank then starts without the fork server
        _answer(connection, f"refused the fork failed: {error!r}")
        os._exit(1)
    return _become_rank(rank_request, fds, server, message.detach())


def _receive_request(connection: socket.socket) -> Tuple[request.Request, List[int]]:
    body, fds = _receive(connection)
    rank_request = request.decode(body)
    if len(fds) != _STANDARD_FDS + len(rank_request.fds):  # the kernel has dropped some
        raise ValueError(f"{len(fds)} descriptors arrived")
    return rank_request, fds


def _become_rank(
    rank_request: request.Request, fds: List[int], server: ServerState, message: int
) -> Callable[[], None]:
    """Make this process the rank. If that fails, write the reason to the descriptor `message`, and exit."""
    try:
        moved_code = find_moved_code(server.environment, remove_hook_variables(rank_request))
        program = become_rank(
            rank_request, fds, server.import_output, moved_code, python_set_lc_ctype=server.python_set_lc_ctype
        )
    except Exception as error:  # noqa: BLE001 - the rank then starts without the fork server
        os.write(message, repr(error).encode("utf-8", "replace")[:_MAX_FAILURE_BYTES])
        os._exit(1)
    os.close(message)
    return program


def _move_fd(end: socket.socket, *, highest_fd: int) -> socket.socket:
    """Return the socket with a descriptor above the numbers that the rank needs, and close `end`."""
    moved_end = socket.socket(fileno=fcntl.fcntl(end.fileno(), fcntl.F_DUPFD_CLOEXEC, highest_fd + 1))
    end.close()
    return moved_end


def _wait(connection: socket.socket, pid: int) -> None:
    """Wait for the rank, and send its status. If the wrapper ends, kill the rank.

    The kernel would kill the rank too, but only after it has freed this process' memory, which takes 10 to 30 ms.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    while True:
        ended_pid, status, usage = os.wait4(pid, os.WNOHANG)
        if ended_pid:
            _answer(connection, f"{status} {usage.ru_maxrss} {time.monotonic()!r}")
            return
        readable, _, _ = select.select([connection.fileno(), reader], [], [])
        if connection.fileno() in readable:
            os.kill(pid, signal.SIGKILL)
            return
        os.read(reader, 4096)


def _receive_message(end: socket.socket) -> Tuple[bytes, List[int]]:
    """Return the next piece of data, and the descriptors with it."""
    numbers = array.array("i")
    ancillary_size = socket.CMSG_SPACE(request.MAX_FDS * numbers.itemsize)
    data, ancillary, _, _ = end.recvmsg(65536, ancillary_size, socket.MSG_CMSG_CLOEXEC)
    for level, kind, content in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
    return data, list(numbers)


def _receive(connection: socket.socket) -> Tuple[bytes, List[int]]:
    data, numbers = _receive_message(connection)
    expected_bytes = None
    while expected_bytes is None or len(data) < expected_bytes:
        if expected_bytes is None and len(data) >= request.LENGTH_BYTES:
            expected_bytes = request.LENGTH_BYTES + int.from_bytes(data[: request.LENGTH_BYTES], "big")
            if expected_bytes > request.MAX_BYTES:
                raise ValueError(f"a request of {expected_bytes} bytes")
            continue
        chunk = connection.recv(1 << 20)
        if not chunk:
            os._exit(0)  # the wrapper has ended
        data += chunk
    return data[request.LENGTH_BYTES :], numbers


def _answer(connection: socket.socket, line: str) -> None:
    try:
        connection.sendall(line.encode("utf-8", "replace").replace(b"\n", b" ") + b"\n")
    except OSError:
        pass  # the wrapper has ended
