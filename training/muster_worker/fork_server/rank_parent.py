"""The parent process of a forked rank. The wrapper can't be its parent, because the fork server forks the rank."""

from __future__ import annotations

import array
import fcntl
import os
import select
import signal
import socket
import time

from muster_worker.fork_server import request
from muster_worker.fork_server.forked_rank import become_rank
from muster_worker.fork_server.refusals import ServerState, find_refusal, remove_hook_variables
from muster_worker.fork_server.variables import find_moved_code
from muster_worker.rank import child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, List, Tuple

_MAX_FAILURE_BYTES = 1024
_STANDARD_FDS = 4
"""The working directory and the standard streams come before the other descriptors of a request."""


def serve_request(connection: socket.socket, server: ServerState) -> Callable[[], None]:
    """Fork the process that the request on `connection` describes, and wait for its end. Returns only in the rank."""
    try:
        return _serve_request(connection, server)
    except Exception as error:  # noqa: BLE001 - the rank then starts without the fork server
        _answer(connection, f"refused the fork failed: {error!r}")
        os._exit(1)


def _serve_request(connection: socket.socket, server: ServerState) -> Callable[[], None]:
    _answer(connection, "ready")
    body, fds = _receive(connection)
    rank_request = request.decode(body)
    if len(fds) != _STANDARD_FDS + len(rank_request.fds):  # the kernel has dropped some
        raise ValueError(f"{len(fds)} descriptors arrived")
    refusal = server.refusal or find_refusal(rank_request, os.readlink(f"/proc/self/fd/{fds[0]}"), server)
    if refusal is not None:
        _answer(connection, f"refused {refusal}")
        os._exit(0)
    if select.select([connection], [], [], 0)[0]:
        os._exit(0)  # the wrapper has ended
    os.setsid()
    # Like the wrapper, ignore signals to the rank's process group: they are for the rank and must not end this process.
    signal.pthread_sigmask(signal.SIG_BLOCK, child.FORWARDED_SIGNALS | {signal.SIGCHLD})
    parent = os.getpid()
    reader, writer = _open_pipe(highest_fd=max((2, *rank_request.fds)))
    pid = os.fork()
    if pid == 0:
        connection.close()
        os.close(reader)
        child.die_with_parent()
        if os.getppid() != parent:
            os._exit(128 + signal.SIGKILL)
        return _become_rank(rank_request, fds, server, writer)
    for fd in (*fds, writer):
        os.close(fd)
    message = os.read(reader, _MAX_FAILURE_BYTES)  # empty when the process is the rank
    os.close(reader)
    if message:
        _answer(connection, f"refused the fork failed: {message.decode('utf-8', 'replace')}")
        os._exit(1)
    _answer(connection, f"pid {pid} {parent}")
    _wait(connection, pid)
    os._exit(0)


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


def _open_pipe(*, highest_fd: int) -> Tuple[int, int]:
    """Open a pipe whose write end has a number that the rank does not need."""
    reader, low_writer = os.pipe()
    writer = fcntl.fcntl(low_writer, fcntl.F_DUPFD_CLOEXEC, highest_fd + 1)
    os.close(low_writer)
    return reader, writer


def _wait(connection: socket.socket, pid: int) -> None:
    """Wait for the rank, and send its status. If the wrapper ends, kill the rank.

    The kernel would kill the rank only after it has freed this process' memory, which takes it 10 to 30 ms.
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


def _receive(connection: socket.socket) -> Tuple[bytes, List[int]]:
    numbers = array.array("i")
    ancillary_size = socket.CMSG_SPACE(request.MAX_FDS * numbers.itemsize)
    data, ancillary, _, _ = connection.recvmsg(65536, ancillary_size, socket.MSG_CMSG_CLOEXEC)
    for level, kind, content in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
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
    return data[request.LENGTH_BYTES :], list(numbers)


def _answer(connection: socket.socket, line: str) -> None:
    try:
        connection.sendall(line.encode("utf-8", "replace").replace(b"\n", b" ") + b"\n")
    except OSError:
        pass  # the wrapper has ended
