"""A process that a server forks (support/fork_server.py), which is faster than to import its modules each time.

It is a process of its own, with the arguments, environment and streams that the test chooses, and a child of the
process of the tests. Its command line and its environment in /proc are the server's.
"""

import array
import atexit
import ctypes
import functools
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypedDict, Unpack

from support import fork_server

_PR_SET_CHILD_SUBREAPER = 36
"""From Linux' sys/prctl.h."""

_START_SECONDS = 300.0
"""A limit that only a broken server reaches: it imports everything first."""

_LOCK = threading.Lock()

File = int | IO[Any] | None


class StartOptions(TypedDict, total=False):
    """What a test may choose of a process, as for `subprocess.Popen`."""

    env: Mapping[str, str] | None
    cwd: Path | None
    stdin: File
    stdout: File
    stderr: File
    start_new_session: bool


class ForkedProcess(subprocess.Popen[bytes]):
    """A running program, as `subprocess.Popen` would start it. `agent` is the folder of the agent; None: `muster`."""

    def __init__(self, command: Sequence[str], agent: Path | None = None, **options: Unpack[StartOptions]) -> None:
        self._agent = agent
        super().__init__(command, bufsize=0, **options)

    def _execute_child(  # Popen calls it with all its arguments, by position
        self,
        args: Sequence[str],
        _executable: None,
        _preexec_fn: None,
        _close_fds: bool,  # noqa: FBT001
        _pass_fds: tuple[int, ...],
        cwd: Path | None,
        env: Mapping[str, str] | None,
        _startupinfo: None,
        _creationflags: int,
        _shell: bool,  # noqa: FBT001
        p2cread: int,
        p2cwrite: int,
        c2pread: int,
        c2pwrite: int,
        errread: int,
        errwrite: int,
        _restore_signals: bool,  # noqa: FBT001
        _gid: None,
        _gids: None,
        _uid: None,
        _umask: int,
        start_new_session: bool,  # noqa: FBT001
        _process_group: int,
    ) -> None:
        request: fork_server.Request = {
            "arguments": args,
            "folder": str(cwd or Path.cwd()),
            "environment": dict(os.environ if env is None else env),
            "new_session": start_new_session,
        }
        streams = [own if given == -1 else given for own, given in enumerate((p2cread, c2pwrite, errwrite))]
        # Threads share the servers: each must get the process that it asked for.
        with _LOCK:
            self.pid = _fork(_server(self._agent), request, streams)
        self._child_created = True
        # What Popen does after a fork: close the child's ends of the pipes.
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]


def _fork(requests: socket.socket, request: fork_server.Request, streams: Sequence[int]) -> int:
    with _subreaper():
        requests.sendmsg(
            [json.dumps(request).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", streams))]
        )
        return int(requests.recv(64))


@functools.cache
def _server(agent: Path | None) -> socket.socket:
    """Start a server of this process. It ends when this process closes its socket."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, "-P", fork_server.__file__, str(theirs.fileno())]
        command += [] if agent is None else [str(agent)]
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
    atexit.register(server.wait)
    atexit.register(ours.close)  # which is called first
    ours.settimeout(_START_SECONDS)
    return ours


@contextmanager
def _subreaper() -> Iterator[None]:
    """Make this process the parent of a grandchild whose parent ends. Otherwise orphans go to the machine's init."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
