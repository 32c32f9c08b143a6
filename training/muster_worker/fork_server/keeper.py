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
from muster_worker.fork_server.obstacles import ServerState, find_obstacle
from muster_worker.rank import child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, List, Sequence, Tuple


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
    why = server.refusal or find_obstacle(asked, os.readlink(f"/proc/self/fd/{fds[0]}"), server)
    if why is not None:
        _answer(connection, f"refused {why}")
        os._exit(0)
    if select.select([connection], [], [], 0)[0]:
        os._exit(0)  # the wrapper has ended
    os.setsid()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    keeper = os.getpid()
    failure_reader, failure_writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        connection.close()
        os.close(failure_reader)
        child.die_with_parent()
        if os.getppid() != keeper:
            os._exit(128 + signal.SIGKILL)
        return _become(asked, fds, server, failure_writer)
    for fd in (*fds, failure_writer):
        os.close(fd)
    failure = os.read(failure_reader, 4096)  # empty once the process is the rank
    if failure:
        _answer(connection, f"refused {failure.decode('utf-8', 'replace')}")
        os._exit(0)
    _answer(connection, f"pid {pid}")
    _wait(connection, pid)
    os._exit(0)


def _become(asked: request.Request, fds: Sequence[int], server: ServerState, failure_writer: int) -> Callable[[], None]:
    # The rank's descriptors may have any number.
    above = fcntl.fcntl(failure_writer, fcntl.F_DUPFD_CLOEXEC, max(asked.fds, default=0) + 1)
    os.close(failure_writer)
    try:
        program = become(asked, fds, server.printed, adds_locale=server.adds_locale)
        os.close(above)
    except Exception as error:  # noqa: BLE001 - the rank then starts plainly
        os.write(above, repr(error).encode("utf-8", "replace"))
        os._exit(1)
    return program


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
