"""The node's processes: start them so that none outlives the agent, find all of them, end all of them."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple

# linux/prctl.h
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

# proc(5), /proc/pid/stat: the fields after the command's name
_STATE, _PARENT, _THREADS = 0, 1, 17

_LIBC = ctypes.CDLL(None, use_errno=True)
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Ended(NamedTuple):
    """A child that was reaped. `exit_code` is -1 when a signal ended it, `signal` 0 when none did."""

    pid: int
    exit_code: int
    signal: int


class _Entry(NamedTuple):
    parent: int
    is_gone: bool


def adopt_orphans() -> None:
    """Make this process the parent of every descendant whose own parent ends, however it tried to get away."""
    if _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def start(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own with both outputs as pipes.

    The kernel kills it when the thread that called this ends, so only the main thread may. Raises `OSError` when the
    command can't be executed.
    """
    return subprocess.Popen(
        list(command),
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # no thread is needed between fork and exec: the function is bound already and calls the kernel only
        preexec_fn=_die_with_parent,  # noqa: PLW1509
    )


def start_quickly(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """As `start`, for many processes at once: they don't end with this one by themselves. The guardian ends them.

    With nothing to do between fork and exec Python needs no copy of this process: 1 ms instead of 7 on a busy machine.
    """
    return subprocess.Popen(
        list(command),
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def _die_with_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def end_with_parent(parent: int) -> None:
    """Get SIGTERM when the parent ends, which was process `parent`."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:  # it died before we asked
        os.kill(os.getpid(), signal.SIGTERM)


def reap() -> List[Ended]:
    """Collect every child that has ended, adopted ones too."""
    ended: List[Ended] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        if os.WIFSIGNALED(status):
            ended.append(Ended(pid, -1, os.WTERMSIG(status)))
        elif os.WIFEXITED(status):
            ended.append(Ended(pid, os.WEXITSTATUS(status), 0))


def descendants() -> Tuple[int, ...]:
    """All living processes below this one, zombies left out; children come after their parents.

    A process whose first thread has ended looks like a zombie as long as the others live.
    """
    table = _table()
    children: Dict[int, List[int]] = {}
    for pid, entry in table.items():
        children.setdefault(entry.parent, []).append(pid)
    result: List[int] = []
    todo = [os.getpid()]
    while todo:
        below = children.get(todo.pop(), [])
        result += below
        todo += below
    return tuple(pid for pid in result if not table[pid].is_gone)


def marked(mark: bytes) -> Tuple[int, ...]:
    """All living processes below this one that were started with `mark`, NAME=VALUE, in their environment."""
    return tuple(pid for pid in descendants() if mark in _environment(pid))


def exists(pid: int) -> bool:
    """Whether there is such a process; a zombie is one, until it is reaped."""
    return os.path.exists(f"/proc/{pid}")


def signal_all(pids: Sequence[int], number: int) -> Tuple[int, ...]:
    """Send a signal to each process. Returns `pids` without those of other users (`sudo`).

    Nothing that we do ends those, so nobody must wait for them.
    """
    reached = []
    for pid in pids:
        try:
            os.kill(pid, number)
        except PermissionError:
            continue
        except ProcessLookupError:
            pass  # it counts: what it started a moment ago isn't in the list
        reached.append(pid)
    return tuple(reached)


def signal_session(leader: int, number: int) -> None:
    """Send a signal to the process group that a process started by `start` leads."""
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        return


def memory(pid: int) -> int:
    """The resident memory of a process in bytes; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


def take_outputs(process: subprocess.Popen[bytes]) -> Tuple[int, int]:
    """The pipes of a process that `start` gave, as plain descriptors: it is reaped by its pid, without the object."""
    if process.stdout is None or process.stderr is None:
        raise AssertionError("started with both outputs as pipes")
    outputs = os.dup(process.stdout.fileno()), os.dup(process.stderr.fileno())
    process.stdout.close()
    process.stderr.close()
    process.returncode = 0  # silences its own attempts to reap
    return outputs


def _environment(pid: int) -> Sequence[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return ()  # it is gone, or another user's


def _table() -> Dict[int, _Entry]:
    table = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                text = file.read()
        except OSError:
            continue  # it ended while the list was read
        # the command's name is in parentheses and may itself hold any character
        fields = text[text.rindex(b")") + 2 :].split()
        is_gone = fields[_STATE] == b"Z" and int(fields[_THREADS]) <= 1
        table[int(name)] = _Entry(int(fields[_PARENT]), is_gone)
    return table
