"""Starts a command as a child, forwards signals to it, waits for it, and exits with the same status.

The child has the same process group, CPUs, descriptors and signal settings as if the launcher had started it itself.
Only its standard streams differ. The parent exits after the child. If the parent is killed, the kernel kills the child.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the C module of `signal`
import errno
import os
import resource
import time

from muster_worker.rank import progress_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, FrozenSet, List, Mapping, NoReturn, Optional, Sequence, Tuple

PR_SET_PDEATHSIG = 1  # linux/prctl.h
STANDARD_ERROR = 2

FORWARDED_SIGNALS = frozenset(
    {
        _signal.SIGTERM,
        _signal.SIGINT,
        _signal.SIGHUP,
        _signal.SIGQUIT,
        _signal.SIGUSR1,
        _signal.SIGUSR2,
        _signal.SIGCONT,
    }
)
"""Signals that users and schedulers send to a training process."""

NOT_FOUND = 127
NOT_EXECUTABLE = 126
"""Exit codes of a shell for a command that it can't execute."""


class CommandRefused(Exception):
    """The command can't be executed. `exit_code` is `NOT_FOUND` or `NOT_EXECUTABLE`."""

    def __init__(self, exit_code: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def die_with_parent() -> None:
    """Make the kernel kill this process when the thread that started it ends."""
    _set_death_signal(int(_signal.SIGKILL))


def survive_parent() -> None:
    """Undo `die_with_parent`."""
    _set_death_signal(0)


def _set_death_signal(number: int) -> None:
    try:
        import ctypes
    except ImportError:  # a Python without libffi: the agent still kills all descendants
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)


def block_signals() -> FrozenSet[int]:
    """Block forwarded signals until `Child.wait`. Returns the previous mask, for the child."""
    previous_mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, FORWARDED_SIGNALS | {_signal.SIGCHLD})
    return frozenset(int(number) for number in previous_mask)


def choose_signalled_pids(pid: int, python: Optional[int], number: int) -> Tuple[int, ...]:
    """Return the processes that get a signal for a command. `python` is the rank's Python, if the command started it.

    A shell that gets SIGTERM ends without passing it on, so the Python that it waits for gets the signal instead. A
    shell with a trap gets it, too.
    """
    if python is None or python == pid:
        return (pid,)
    return (python, pid) if handles_signal(pid, number) else (python,)


def handles_signal(pid: int, number: int) -> bool:
    """Whether the process has a handler for the signal."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith("SigCgt:"):
                    return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    except OSError:  # the process has ended meanwhile
        pass
    return False


class Child:
    """A running command. `start` returns it. `progress_path` is the rank's progress file, if the command is a rank."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.progress_path: Optional[str] = None
        self.peak_bytes = 0  # maximum resident memory, after its end
        self.ended_at = 0.0  # monotonic time

    def wait(self) -> int:
        """Forward signals until the command has ended. Returns its wait status (`os.WIFSIGNALED`, ...)."""
        # Don't forward a signal that the whole process group has received: programs treat a second SIGTERM as urgent.
        # Launchers signal the whole group if the process that they started, which is this one, leads the group.
        is_group_leader = os.getpgrp() == os.getpid()
        while True:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if pid:
                self.peak_bytes, self.ended_at = usage.ru_maxrss * 1024, time.monotonic()
                return status
            signal_info = _signal.sigwaitinfo(FORWARDED_SIGNALS | {_signal.SIGCHLD})
            is_from_kernel = signal_info.si_code > 0  # Ctrl-C in a terminal signals the whole group
            if not is_group_leader and not is_from_kernel:
                self._forward(signal_info.si_signo)

    def _forward(self, number: int) -> None:
        python = progress_file.find_claimer(self.progress_path) if self.progress_path else None
        for pid in choose_signalled_pids(self.pid, python, number):
            try:
                os.kill(pid, number)
            except ProcessLookupError:  # the Python has ended meanwhile; the command itself is not reaped yet
                pass


def start(
    command: Sequence[str],
    environment: Mapping[str, str],
    streams: Optional[Tuple[int, int]],
    signal_mask: FrozenSet[int],
) -> Child:
    """Run `command`, with PATH if it has no slash. Call `block_signals` first. Raises `CommandRefused`.

    `streams` are descriptors for standard output and standard error; standard input is empty. If `streams` is None, the
    child inherits all three standard streams.
    """
    # Only this process has received signals from before the fork: forward them.
    pending_signals = [number for number in _signal.sigpending() if number in FORWARDED_SIGNALS]
    failure_reader, failure_writer = os.pipe()
    parent = os.getpid()
    try:
        pid = os.fork()
    except OSError as error:
        raise CommandRefused(NOT_EXECUTABLE, f"no process could be started: {error.strerror}") from error
    if pid == 0:
        try:
            _exec_child(command, environment, streams, signal_mask, parent)
        except OSError as error:
            os.write(failure_writer, str(error.errno).encode())
        finally:
            os._exit(NOT_EXECUTABLE)
    os.close(failure_writer)
    for number in pending_signals:
        _signal.sigtimedwait({number}, 0)
        os.kill(pid, number)
    error_number = os.read(failure_reader, 16)  # empty after a successful exec, which closes the descriptor
    os.close(failure_reader)
    if error_number:
        os.waitpid(pid, 0)
        raise _describe_failure(command[0], environment, int(error_number))
    return Child(pid)


def replace_process(command: Sequence[str], environment: Mapping[str, str], signal_mask: FrozenSet[int]) -> NoReturn:
    """Run `command` in this process. Call `block_signals` first. Raises `CommandRefused`."""
    try:
        _exec_child(command, environment, None, signal_mask, os.getppid())
    except OSError as error:
        raise _describe_failure(command[0], environment, error.errno or 0) from error


def exit_with_status(status: int) -> NoReturn:
    """Exit with the child's exit code, or die by its signal."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        _, hard_limit = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, hard_limit))  # the child has already dumped its core
        if number not in (_signal.SIGKILL, _signal.SIGSTOP):
            _signal.signal(number, _signal.SIG_DFL)
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
        os._exit(128 + number)  # process 1 of a container ignores signals that it sends to itself
    os._exit(os.WEXITSTATUS(status))


def _exec_child(
    command: Sequence[str],
    environment: Mapping[str, str],
    streams: Optional[Tuple[int, int]],
    signal_mask: FrozenSet[int],
    parent: int,
) -> NoReturn:
    die_with_parent()
    if os.getppid() != parent:  # the parent ended before the call
        os._exit(128 + _signal.SIGKILL)
    if streams is not None:
        os.dup2(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), 0)
        os.dup2(streams[0], 1)
        os.dup2(streams[1], 2)
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):  # Python ignores them; the command must not
        _signal.signal(number, _signal.SIG_DFL)
    if _signal.getsignal(_signal.SIGINT) != _signal.SIG_IGN:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, signal_mask)
    error_to_raise: Optional[OSError] = None
    for path in _list_candidate_paths(command[0], environment):
        try:
            os.execve(path, list(command), dict(environment))
        except OSError as error:
            # As a shell does, prefer the error of an existing file to "no such file" in the next folder.
            if error_to_raise is None or error_to_raise.errno in (errno.ENOENT, errno.ENOTDIR):
                error_to_raise = error
    raise error_to_raise or FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def _list_candidate_paths(program: str, environment: Mapping[str, str]) -> List[str]:
    if "/" in program:
        return [program]
    folders = environment.get("PATH", os.defpath).split(":")
    return [os.path.join(folder, program) for folder in folders] if program else []


def _describe_failure(program: str, environment: Mapping[str, str], number: int) -> CommandRefused:
    path = next((path for path in _list_candidate_paths(program, environment) if os.path.exists(path)), None)
    if path is None:
        if "/" in program:
            problem = "no such file" if os.path.isabs(program) else f"no such file in {os.getcwd()}"
        else:
            problem = f"not found in PATH ({environment.get('PATH', os.defpath)})"
        return CommandRefused(NOT_FOUND, f"command {program!r}: {problem}")
    if os.path.isdir(path):
        reason = "is a folder"
    elif number == errno.EACCES:
        mode = os.stat(path).st_mode & 0o7777
        reason = f"is not executable (mode {mode:o}); make it executable, or put its interpreter before it"
    elif number == errno.ENOEXEC:
        reason = "is not a program for this machine; a script needs '#!' and its interpreter in the first line"
    elif number == errno.ENOENT:
        reason = "has an interpreter ('#!' line or loader) that doesn't exist"
    else:
        reason = os.strerror(number)
    return CommandRefused(NOT_EXECUTABLE, f"command {program!r}: {path} {reason}")


def read_environment() -> Dict[str, str]:
    """Return the environment of this process, without the LC_CTYPE that Python adds in the C locale."""
    environment = dict(os.environ)
    with open("/proc/self/environ", "rb") as file:
        names = {entry.partition(b"=")[0] for entry in file.read().split(b"\0")}
    if b"LC_CTYPE" not in names:
        environment.pop("LC_CTYPE", None)
    return environment


def open_standard_streams() -> None:
    """Open descriptors 0 to 2 if they are closed, so that no other file gets their numbers."""
    fd = os.open(os.devnull, os.O_RDWR)
    while fd <= STANDARD_ERROR:
        fd = os.open(os.devnull, os.O_RDWR)
    os.close(fd)
