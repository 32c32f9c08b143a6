"""`muster` as a process that a server forks (support/fork_server.py), which is faster than to import it each time.

It is a process of its own, with the arguments, environment and streams that the test chooses, and a child of the
process of the tests. Its command line and its environment in /proc are the server's.
"""

import array
import asyncio
import atexit
import ctypes
import functools
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from support import fork_server

MUSTER = Path(sys.executable).with_name("muster")

_PR_SET_CHILD_SUBREAPER = 36
"""From Linux' sys/prctl.h."""

_START_SECONDS = 300.0
"""A limit that only a broken server reaches: it imports all commands first."""

END_SECONDS = 240.0
"""A limit that only a hanging command reaches: four Pythons that import torch take two minutes on a busy machine."""

File = int | IO[Any] | None


class MusterProcess(subprocess.Popen[bytes]):
    """A running `muster`, as `subprocess.Popen` would start it."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: File = None,
        stdout: File = None,
        stderr: File = None,
        start_new_session: bool = False,
    ) -> None:
        super().__init__(
            [str(MUSTER), *words],
            bufsize=0,
            env=env,
            cwd=cwd,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=start_new_session,
        )

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
        self.pid = _fork(request, streams)
        self._child_created = True
        # What Popen does after a fork: close the child's ends of the pipes.
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class EndedMuster:
    """The result of a command."""

    exit_code: int
    output: str  # standard output
    messages: str  # standard error


def run_muster(
    *words: str, env: Mapping[str, str] | None = None, cwd: Path | None = None, stdin: bytes = b""
) -> EndedMuster:
    """Run a command to its end."""
    pipe = subprocess.PIPE
    with MusterProcess(words, env=env, cwd=cwd, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            output, messages = process.communicate(stdin, timeout=END_SECONDS)
        finally:
            process.kill()
    return EndedMuster(process.returncode, output.decode(), messages.decode())


async def run_with_kubeconfig(kubeconfig: Path | str, *words: str) -> tuple[int, str, str]:
    """Run a command. Return its exit code, standard output and standard error."""
    ended = await asyncio.to_thread(run_muster, *words, env={**os.environ, "KUBECONFIG": str(kubeconfig)})
    return ended.exit_code, ended.output, ended.messages


def _fork(request: fork_server.Request, streams: Sequence[int]) -> int:
    requests = _server()
    with _subreaper():
        requests.sendmsg(
            [json.dumps(request).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", streams))]
        )
        return int(requests.recv(64))


@functools.cache
def _server() -> socket.socket:
    """Start the server of this process. It ends when this process closes its socket."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-P", fork_server.__file__, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
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
