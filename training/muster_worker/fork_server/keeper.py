"""The keeper of a forked rank: its parent, in place of the wrapper, which is another process' child."""

from __future__ import annotations

import array
import fcntl
import os
import select
import signal
import socket
import time

from muster_worker.fork_server import request
from muster_worker.fork_server.forked_rank import become
from muster_worker.fork_server.obstacles import ServerState, find_obstacle, own_variables
from muster_worker.fork_server.variables import find_moved_code
from muster_worker.rank import child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, List, Tuple

_MAX_FAILURE_BYTES = 1024
_STANDARD_FDS = 4
"""The working directory and the standard streams come before the other descriptors of a request."""


def keep(connection: socket.socket, server: ServerState) -> Callable[[], None]:
    """Fork the process that the connection asks for, and wait for its end. Returns only in that process."""
    try:
        return _keep(connection, server)
    except Exception as error:  # noqa: BLE001 - the rank then starts plainly
        _answer(connection, f"refused the fork failed: {error!r}")
        os._exit(1)


def _keep(connection: socket.socket, server: ServerState) -> Callable[[], None]:
    _answer(connection, "ready")
    body, fds = _receive(connection)
    asked = request.decode(body)
    if len(fds) != _STANDARD_FDS + len(asked.fds):  # no room for all of them
        raise ValueError(f"it got {len(fds)} descriptors")
    why = server.refusal or find_obstacle(asked, os.readlink(f"/proc/self/fd/{fds[0]}"), server)
    if why is not None:
        _answer(connection, f"refused {why}")
        os._exit(0)
    if select.select([connection], [], [], 0)[0]:
        os._exit(0)  # the wrapper has ended
    os.setsid()
    # As the wrapper does: a signal to the rank's process group is for the rank, and must not end its keeper.
    signal.pthread_sigmask(signal.SIG_BLOCK, child.FORWARDED_SIGNALS | {signal.SIGCHLD})
    keeper = os.getpid()
    reader, writer = _open_pipe(above=max((2, *asked.fds)))
    pid = os.fork()
    if pid == 0:
        connection.close()
        os.close(reader)
        child.die_with_parent()
        if os.getppid() != keeper:
            os._exit(128 + signal.SIGKILL)
        return _become(asked, fds, server, writer)
    for fd in (*fds, writer):
        os.close(fd)
    failure = os.read(reader, _MAX_FAILURE_BYTES)  # empty when the process is the rank
    os.close(reader)
    if failure:
        _answer(connection, f"refused the fork failed: {failure.decode('utf-8', 'replace')}")
        os._exit(1)
    _answer(connection, f"pid {pid} {keeper}")
    _wait(connection, pid)
    os._exit(0)


def _become(asked: request.Request, fds: List[int], server: ServerState, failure: int) -> Callable[[], None]:
    """Make this process the rank, or write the reason why it can't be to `failure` and end."""
    try:
        moved = find_moved_code(server.environment, own_variables(asked))
        program = become(asked, fds, server.printed, moved, adds_locale=server.adds_locale)
    except Exception as error:  # noqa: BLE001 - the rank then starts plainly
        os.write(failure, repr(error).encode("utf-8", "replace")[:_MAX_FAILURE_BYTES])
        os._exit(1)
    os.close(failure)
    return program


def _open_pipe(*, above: int) -> Tuple[int, int]:
    """Open a pipe whose write end has a number that the rank does not need."""
    reader, low_writer = os.pipe()
    writer = fcntl.fcntl(low_writer, fcntl.F_DUPFD_CLOEXEC, above + 1)
    os.close(low_writer)
    return reader, writer


def _wait(connection: socket.socket, pid: int) -> None:
    """Wait for the rank, and send its status. Without a wrapper this process ends, and the kernel ends the rank."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    while True:
        ended, status, used = os.wait4(pid, os.WNOHANG)
        if ended:
            _answer(connection, f"{status} {used.ru_maxrss} {time.monotonic()!r}")
            return
        readable, _, _ = select.select([connection.fileno(), reader], [], [])
        if connection.fileno() in readable:
            return
        os.read(reader, 4096)


def _receive(connection: socket.socket) -> Tuple[bytes, List[int]]:
    numbers = array.array("i")
    room = socket.CMSG_SPACE(request.MAX_FDS * numbers.itemsize)
    data, ancillary, _, _ = connection.recvmsg(65536, room, socket.MSG_CMSG_CLOEXEC)
    for level, kind, content in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
    wanted = None
    while wanted is None or len(data) < wanted:
        if wanted is None and len(data) >= request.LENGTH_BYTES:
            wanted = request.LENGTH_BYTES + int.from_bytes(data[: request.LENGTH_BYTES], "big")
            if wanted > request.MAX_BYTES:
                raise ValueError(f"a request of {wanted} bytes")
            continue
        more = connection.recv(1 << 20)
        if not more:
            os._exit(0)  # the wrapper has ended
        data += more
    return data[request.LENGTH_BYTES :], list(numbers)


def _answer(connection: socket.socket, line: str) -> None:
    try:
        connection.sendall(line.encode("utf-8", "replace").replace(b"\n", b" ") + b"\n")
    except OSError:
        pass  # the wrapper has ended
