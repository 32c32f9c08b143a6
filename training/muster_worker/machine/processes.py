"""Starts, lists and stops the node's processes, so that no process outlives the agent."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from muster_worker.contract.schema import STOPPED_BY_DEBUGGER, STOPPED_BY_SIGNAL
from muster_worker.fork_server.spares import NAME as SPARE_NAME

# linux/prctl.h
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

# proc(5), /proc/pid/stat: indexes of the fields after the command's name
_STATE, _PARENT, _THREADS = 0, 1, 17

_STOPPED_STATES = {b"T": STOPPED_BY_SIGNAL, b"t": STOPPED_BY_DEBUGGER, b"D": "uninterruptible sleep"}

_LIBC = ctypes.CDLL(None, use_errno=True)
_PAGE = os.sysconf("SC_PAGE_SIZE")


class ProcessExit(NamedTuple):
    """A reaped child. `exit_code` is -1 if a signal ended it; otherwise `signal` is 0."""

    pid: int
    exit_code: int
    signal: int


class _Entry(NamedTuple):
    name: str
    parent: int
    is_zombie: bool


def adopt_orphans() -> None:
    """Make this process the new parent of all orphaned descendants."""
    if _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def start(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a process in a new session, with pipes for both outputs. Raises `OSError`.

    The kernel kills the process when the calling thread ends, so call this from the main thread only.
    """
    return subprocess.Popen(
        list(command),
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # This is safe without other threads: the function only makes a system call, and ctypes has loaded it already.
        preexec_fn=_die_with_parent,  # noqa: PLW1509
    )


def start_with_vfork(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a process as `start` does, but faster, for callers that start many processes.

    When this process ends, the guardian kills the new process, not the kernel. Without preexec_fn, Python uses vfork,
    which takes 1 ms instead of 7 ms on a busy machine.
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


def die_with_parent(parent: int) -> None:
    """Make the kernel kill this process when the parent, process `parent`, ends."""
    _die_with_parent()
    if os.getppid() != parent:  # the parent ended before the call
        os._exit(128 + signal.SIGKILL)


def terminate_with_parent(parent: int) -> None:
    """Make the kernel send SIGTERM when the parent, process `parent`, ends."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:  # the parent ended before the call
        os.kill(os.getpid(), signal.SIGTERM)


def reap() -> List[ProcessExit]:
    """Reap all children that have ended, including adopted orphans."""
    exits: List[ProcessExit] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return exits
        if pid == 0:
            return exits
        if os.WIFSIGNALED(status):
            exits.append(ProcessExit(pid, -1, os.WTERMSIG(status)))
        elif os.WIFEXITED(status):
            exits.append(ProcessExit(pid, os.WEXITSTATUS(status), 0))


def list_descendants(fork_server: Optional[int] = None) -> Tuple[int, ...]:
    """Return the pids of all descendants except zombies, the fork server and its spares; parents before their children.

    A process whose main thread has ended looks like a zombie while other threads run.
    """
    if not _has_children():
        return ()  # reading /proc takes longer the more processes the machine has
    table = _read_table()
    children: Dict[int, List[int]] = {}
    for pid, entry in table.items():
        children.setdefault(entry.parent, []).append(pid)
    result: List[int] = []
    spares = {fork_server}
    pending = [os.getpid()]
    while pending:
        parent = pending.pop()
        children_of_parent = children.get(parent, [])
        if parent in spares:  # only a child of the fork server or of a spare can be one, whatever others are called
            spares.update(pid for pid in children_of_parent if table[pid].name == SPARE_NAME)
        result += children_of_parent
        pending += children_of_parent
    return tuple(pid for pid in result if pid not in spares and not table[pid].is_zombie)


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def find_by_environment(variable: bytes) -> Tuple[int, ...]:
    """Return the pids of descendants that started with `variable` (NAME=VALUE) in their environment."""
    return tuple(pid for pid in list_descendants() if variable in _read_environment(pid))


def process_exists(pid: int) -> bool:
    """Whether a process or zombie has this pid."""
    return os.path.exists(f"/proc/{pid}")


def signal_processes(pids: Sequence[int], number: int) -> Tuple[int, ...]:
    """Send a signal to each process. Returns `pids` without processes of other users (`sudo`).

    The agent can't end processes of other users, so callers must not wait for them.
    """
    signalled_pids = []
    for pid in pids:
        try:
            os.kill(pid, number)
        except PermissionError:
            continue
        except ProcessLookupError:
            pass  # return its pid, so that the caller lists the processes again: its children may be missing in `pids`
        signalled_pids.append(pid)
    return tuple(signalled_pids)


def signal_process_group(leader: int, number: int) -> None:
    """Send a signal to the process group of a process from `start`."""
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        return


def are_in_groups(pids: Sequence[int], leaders: Sequence[int]) -> bool:
    """Whether one of the processes is in one of these process groups."""
    for pid in pids if leaders else ():
        try:
            if os.getpgid(pid) in leaders:
                return True
        except ProcessLookupError:
            continue
    return False


def read_resident_bytes(pid: int) -> int:
    """Return the resident memory of a process in bytes; 0 after its end."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


def describe_stop(pid: int) -> Optional[str]:
    """Return why a process can't run, as part of a sentence; None if the process runs, sleeps or has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state = file.read().rpartition(b")")[2].split()[_STATE]
    except (OSError, IndexError):
        return None
    return _STOPPED_STATES.get(state)


def take_outputs(process: subprocess.Popen[bytes]) -> Tuple[int, int]:
    """Take the output pipes of a process from `start` as descriptors. The agent reaps it by its pid."""
    if process.stdout is None or process.stderr is None:
        raise AssertionError("started with both outputs as pipes")
    outputs = os.dup(process.stdout.fileno()), os.dup(process.stderr.fileno())
    process.stdout.close()
    process.stderr.close()
    process.returncode = 0  # stops Popen from reaping it
    return outputs


def _read_environment(pid: int) -> Sequence[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return ()  # it has ended, or belongs to another user


def _read_table() -> Dict[int, _Entry]:
    table = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                text = file.read()
        except OSError:
            continue  # it has ended meanwhile
        # the command's name is in parentheses and may contain any character
        command_end = text.rindex(b")")
        command, fields = os.fsdecode(text[text.index(b"(") + 1 : command_end]), text[command_end + 2 :].split()
        is_zombie = fields[_STATE] == b"Z" and int(fields[_THREADS]) <= 1
        table[int(name)] = _Entry(command, int(fields[_PARENT]), is_zombie)
    return table


def read_command_line(pid: int) -> Tuple[str, ...]:
    """Return the start of a process' command line; empty if it is unknown."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            # a forked rank's command line ends with unused padding
            return tuple(os.fsdecode(file.read(4096)).rstrip("\0").split("\0"))
    except OSError:
        return ()
