"""Start a command as a child, wait for it while passing signals on, and end as it ended.

The child differs from one that the launcher had started itself in nothing but its standard streams: same process
group, same CPUs, same descriptors, signals as they were. It never outlives its parent, and the parent never dies first.
"""

from __future__ import annotations

import errno
import os
import resource
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, FrozenSet, List, Mapping, NoReturn, Optional, Sequence, Tuple

PR_SET_PDEATHSIG = 1  # linux/prctl.h
STANDARD_ERROR = 2

PASSED_ON = frozenset(
    {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT}
)
"""Signals that people and schedulers send to a training."""

NOT_FOUND = 127
NOT_EXECUTABLE = 126
"""Exit codes of a command that couldn't be run, as a shell has them."""


class CommandRefused(Exception):
    """The command can't be executed. `exit_code` is `NOT_FOUND` or `NOT_EXECUTABLE`; the message is for people."""

    def __init__(self, exit_code: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def die_with_parent() -> None:
    """Ask the kernel to kill this process when the thread that started it ends."""
    try:
        import ctypes
    except ImportError:  # a Python built without libffi: the agent still ends the whole process tree
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def hold_signals() -> FrozenSet[int]:
    """From now on `PASSED_ON` signals wait for `Child.wait`. Returns the mask that was, for the child."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON | {signal.SIGCHLD})
    return frozenset(int(number) for number in before)


class Child:
    """A running command. Make it with `start`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.peak_bytes = 0  # the most memory it had, once it is gone

    def wait(self) -> int:
        """Pass signals on until the command is gone; its wait status (`os.WIFSIGNALED`, ...)."""
        # Who signals a whole process group has reached the child as well: a second SIGTERM would often mean "at once".
        # Launchers signal the group when its leader is the process they started, which is us.
        leads_group = os.getpgrp() == os.getpid()
        while True:
            pid, status, used = os.wait4(self.pid, os.WNOHANG)
            if pid:
                self.peak_bytes = used.ru_maxrss * 1024
                return status
            signalled = signal.sigwaitinfo(PASSED_ON | {signal.SIGCHLD})
            by_kernel = signalled.si_code > 0  # a terminal's Ctrl-C goes to the whole foreground group
            if not leads_group and not by_kernel:
                os.kill(self.pid, signalled.si_signo)


def start(
    command: Sequence[str],
    environment: Mapping[str, str],
    streams: Optional[Tuple[int, int]],
    signal_mask: FrozenSet[int],
) -> Child:
    """Run `command`, found through PATH. Call `hold_signals` before. Raises `CommandRefused`.

    `streams` are the descriptors for standard output and standard error; standard input is then empty. With None all
    three stay ours.
    """
    # what came while there was no child was sent to us alone: nobody else can pass it on
    early = [number for number in signal.sigpending() if number in PASSED_ON]
    failed, report_failure = os.pipe()
    parent = os.getpid()
    try:
        pid = os.fork()
    except OSError as error:
        raise CommandRefused(NOT_EXECUTABLE, f"no process could be started: {error.strerror}") from error
    if pid == 0:
        try:
            _become(command, environment, streams, signal_mask, parent)
        except OSError as error:
            os.write(report_failure, str(error.errno).encode())
        finally:
            os._exit(NOT_EXECUTABLE)
    os.close(report_failure)
    for number in early:
        signal.sigtimedwait({number}, 0)
        os.kill(pid, number)
    answer = os.read(failed, 16)  # nothing: the descriptor was closed by a successful exec
    os.close(failed)
    if answer:
        os.waitpid(pid, 0)
        raise _refusal(command[0], environment, int(answer))
    return Child(pid)


def end_like(status: int) -> NoReturn:
    """Leave with the child's exit code, or by the child's signal."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        _, most = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, most))  # the core that matters is the child's
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
        os._exit(128 + number)  # process 1 of a container doesn't die by its own signals
    os._exit(os.WEXITSTATUS(status))


def _become(
    command: Sequence[str],
    environment: Mapping[str, str],
    streams: Optional[Tuple[int, int]],
    signal_mask: FrozenSet[int],
    parent: int,
) -> None:
    die_with_parent()
    if os.getppid() != parent:  # it died before we asked
        os._exit(128 + signal.SIGKILL)
    if streams is not None:
        os.dup2(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), 0)
        os.dup2(streams[0], 1)
        os.dup2(streams[1], 2)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and exec would pass that on
        signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, signal_mask)
    refused: Optional[OSError] = None
    for candidate in _candidates(command[0], environment):
        try:
            os.execve(candidate, list(command), dict(environment))
        except OSError as error:
            # as a shell does: a file that is there and can't be run says more than the next folder, which has none
            if refused is None or refused.errno in (errno.ENOENT, errno.ENOTDIR):
                refused = error
    raise refused or FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def _candidates(program: str, environment: Mapping[str, str]) -> List[str]:
    if "/" in program:
        return [program]
    folders = environment.get("PATH", os.defpath).split(":")
    return [os.path.join(folder, program) for folder in folders] if program else []


def _refusal(program: str, environment: Mapping[str, str], number: int) -> CommandRefused:
    result = next((path for path in _candidates(program, environment) if os.path.exists(path)), None)
    if result is None:
        if "/" in program:
            where = "no such file" if os.path.isabs(program) else f"no such file in {os.getcwd()}"
        else:
            where = f"in no folder of PATH ({environment.get('PATH', os.defpath)})"
        return CommandRefused(NOT_FOUND, f"command {program!r}: {where}")
    if os.path.isdir(result):
        why = "is a folder"
    elif number == errno.EACCES:
        mode = os.stat(result).st_mode & 0o7777
        why = f"may not be executed (its mode is {mode:o}); make it executable, or put its interpreter before it"
    elif number == errno.ENOEXEC:
        why = "is no program that this machine can run; a script needs '#!' and its interpreter in the first line"
    elif number == errno.ENOENT:
        why = "names an interpreter ('#!' line or loader) that doesn't exist"
    else:
        why = os.strerror(number)
    return CommandRefused(NOT_EXECUTABLE, f"command {program!r}: {result} {why}")


def own_environment() -> Dict[str, str]:
    """The environment we were given: in the C locale Python adds a variable, which isn't the user's."""
    environment = dict(os.environ)
    with open("/proc/self/environ", "rb") as file:
        value = {entry.partition(b"=")[0] for entry in file.read().split(b"\0")}
    if b"LC_CTYPE" not in value:
        environment.pop("LC_CTYPE", None)
    return environment


def keep_standard_streams() -> None:
    """Make sure that descriptors 0 to 2 are open, so that none of ours takes their place."""
    fd = os.open(os.devnull, os.O_RDWR)
    while fd <= STANDARD_ERROR:
        fd = os.open(os.devnull, os.O_RDWR)
    os.close(fd)
