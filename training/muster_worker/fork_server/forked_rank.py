"""Turns a process that the fork server has forked into the rank, as exec and the start of Python would do."""

from __future__ import annotations

import atexit
import builtins
import fcntl
import gc
import os
import resource
import runpy
import signal
import sys
from importlib.machinery import SourceFileLoader

from muster_worker.fork_server.command import parse_command
from muster_worker.fork_server.rendezvous import TORCHRUN, wait_for_store
from muster_worker.rank import hook, hook_environment, optimizer_steps
from muster_worker.rank.command_line import write_command_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, Optional, Sequence, Tuple

    from muster_worker.fork_server.command import PythonCommand
    from muster_worker.fork_server.request import Request

PRELOADED_MODULES = (optimizer_steps,)
"""The hook imports them with torch, which the fork server has imported already."""


def become_rank(
    rank_request: Request,
    fds: Sequence[int],
    output: bytes,
    moved_code: Optional[Tuple[str, str]],
    *,
    python_set_lc_ctype: bool,
) -> Callable[[], None]:
    """Apply the request to this process; return the rank's program. `moved_code` is from `find_moved_code`."""
    python_command = parse_command(rank_request.command)
    if isinstance(python_command, str):
        raise ValueError(python_command)
    _set_descriptors(rank_request.fds, fds)
    _set_limits(rank_request)  # after the descriptors, because the limit of open files may be too low for them
    archive = rank_request.environment.get(b"MUSTER_ARCHIVE")
    locale_variables = {b"LC_CTYPE": os.environb[b"LC_CTYPE"]} if python_set_lc_ctype else {}
    os.environb.clear()
    os.environb.update(locale_variables)  # as Python itself does in the C locale
    os.environb.update(rank_request.environment)
    write_command_line(rank_request.command)
    _set_signals(rank_request)
    atexit.register(gc.unfreeze)  # objects that are never freed look like leaks to some libraries
    _seed_generators()
    if archive is not None and os.fsencode(hook_environment.HOOK) in rank_request.environment:
        _install_hook(os.fsdecode(archive))
    if "orig_argv" in vars(sys):  # since Python 3.10
        vars(sys)["orig_argv"] = list(rank_request.command)
    arguments = rank_request.command[1 + len(python_command.options) :]
    os.write(2, output)
    _set_python_path(python_command, arguments, moved_code)
    if python_command.module:
        return lambda: _run_module(python_command.module, arguments)
    return lambda: _run_script(python_command.script)


def _set_python_path(
    python_command: PythonCommand, arguments: Sequence[str], moved_code: Optional[Tuple[str, str]]
) -> None:
    if python_command.module:
        sys.argv = ["-m", *arguments[2:]]
        script_folder = os.getcwd()
    else:
        sys.argv = list(arguments)
        script_folder = os.path.dirname(os.path.realpath(python_command.script))
    if moved_code is not None:
        sys.path[:] = [moved_code[1] if folder == moved_code[0] else folder for folder in sys.path]
    if not getattr(sys.flags, "safe_path", False):  # PYTHONSAFEPATH: sys.path has no script folder
        sys.path[0] = script_folder


def _install_hook(archive: str) -> None:
    try:
        hook.install(archive)
    except Exception:  # noqa: BLE001, S110 - as in `site/sitecustomize.py`
        pass


def _seed_generators() -> None:
    """Seed the random generators that libraries seed at their import. Python seeds its own generator after a fork."""
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.default_generator.seed()  # the CPU's; torch creates a GPU's generator at its first use


def _set_limits(rank_request: Request) -> None:
    os.umask(rank_request.umask)
    for limit, soft, hard in rank_request.limits:
        if resource.getrlimit(limit) != (soft, hard):
            resource.setrlimit(limit, (soft, hard))
    os.sched_setaffinity(0, rank_request.cpus)
    if os.getpriority(os.PRIO_PROCESS, 0) != rank_request.nice:
        os.setpriority(os.PRIO_PROCESS, 0, rank_request.nice)


def _set_descriptors(target_numbers: Sequence[int], fds: Sequence[int]) -> None:
    """Change to the folder `fds[0]`. Move the next three to the standard streams, the others to `target_numbers`."""
    os.fchdir(fds[0])
    targets = (0, 1, 2, *target_numbers)
    first_free_fd = max(*targets, *fds) + 1
    high_fds = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, first_free_fd) for fd in fds[1:]]
    for fd in fds:
        os.close(fd)
    for fd, target in zip(high_fds, targets):
        os.dup2(fd, target, inheritable=True)
        os.close(fd)


def _set_signals(rank_request: Request) -> None:
    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:
        is_ignored = signal.getsignal(number) is signal.SIG_IGN
        if is_ignored and number not in rank_request.ignored_signals:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        elif number in rank_request.ignored_signals and not is_ignored:
            signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, rank_request.signal_mask)


def _clear_main() -> Dict[str, object]:
    names = vars(sys.modules["__main__"])
    names.clear()
    names.update(__name__="__main__", __doc__=None, __package__=None, __spec__=None, __builtins__=builtins)
    return names


def _run_script(script: str) -> None:
    names = _clear_main()
    path = os.path.join(os.getcwd(), script) if sys.version_info >= (3, 9) else script
    names.update(__loader__=SourceFileLoader("__main__", path), __annotations__={}, __file__=path, __cached__=None)
    try:
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
        exec(code, names)  # noqa: S102 - the user's script, as Python itself would run it
    except SystemExit:
        raise
    except BaseException as error:
        _hide_frames(error)
        raise


def _run_module(module: str, arguments: Sequence[str]) -> None:
    if module == TORCHRUN:
        wait_for_store(arguments)
    runpy.run_module(module, None, "__main__", alter_sys=True)


def _hide_frames(error: BaseException) -> None:
    """Let Python print the error's traceback now, without muster's frames, and not a second time at exit."""
    traceback = None if error.__traceback__ is None else error.__traceback__.tb_next
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, traceback  # as Python does
    sys.excepthook(type(error), error.with_traceback(traceback), traceback)
    sys.excepthook = lambda *_: None
