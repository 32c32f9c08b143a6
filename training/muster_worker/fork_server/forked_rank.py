"""Turns a process that the fork server has forked into the rank: what exec and the start of Python would do."""

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
from muster_worker.rank import hook, hook_environment
from muster_worker.rank.command_line import write_command_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, Optional, Sequence, Tuple

    from muster_worker.fork_server.request import Request


def become(
    asked: Request, fds: Sequence[int], printed: bytes, moved: Optional[Tuple[str, str]], *, adds_locale: bool
) -> Callable[[], None]:
    """Give this process what the request asks for. Returns its program. `moved` is from `find_moved_code`."""
    parsed = parse_command(asked.command)
    if isinstance(parsed, str):
        raise ValueError(parsed)
    _set_descriptors(asked.fds, fds)
    _set_limits(asked)  # after the descriptors: it may allow no more of them
    archive = asked.environment.get(b"MUSTER_ARCHIVE")
    added = {b"LC_CTYPE": os.environb[b"LC_CTYPE"]} if adds_locale else {}
    os.environb.clear()
    os.environb.update(added)  # as Python itself does in the C locale
    os.environb.update(asked.environment)
    write_command_line(asked.command)
    _set_signals(asked)
    atexit.register(gc.unfreeze)  # objects that are never freed look like leaks to some libraries
    _seed_generators()
    if archive is not None and os.fsencode(hook_environment.HOOK) in asked.environment:
        _enter_hook(os.fsdecode(archive))
    if "orig_argv" in vars(sys):  # since Python 3.10
        vars(sys)["orig_argv"] = list(asked.command)
    arguments = asked.command[1 + len(parsed.options) :]
    os.write(2, printed)
    if parsed.module:
        sys.argv = ["-m", *arguments[2:]]
        first = os.getcwd()
    else:
        sys.argv = list(arguments)
        first = os.path.dirname(os.path.realpath(parsed.script))
    if moved is not None:
        sys.path[:] = [moved[1] if folder == moved[0] else folder for folder in sys.path]
    if not getattr(sys.flags, "safe_path", False):  # PYTHONSAFEPATH: the fork server's has no such folder either
        sys.path[0] = first
    if parsed.module:
        return lambda: _run_module(parsed.module)
    return lambda: _run_script(parsed.script)


def _enter_hook(archive: str) -> None:
    try:
        hook.enter(archive)
    except Exception:  # noqa: BLE001, S110 - as in `site/sitecustomize.py`
        pass


def _seed_generators() -> None:
    """Seed what libraries seed at their import. Python's own generator seeds itself anew after a fork."""
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.default_generator.seed()  # of the CPU: those of GPUs begin when the rank first uses one


def _set_limits(asked: Request) -> None:
    os.umask(asked.umask)
    for limit, soft, hard in asked.limits:
        if resource.getrlimit(limit) != (soft, hard):
            resource.setrlimit(limit, (soft, hard))
    os.sched_setaffinity(0, asked.cpus)
    if os.getpriority(os.PRIO_PROCESS, 0) != asked.nice:
        os.setpriority(os.PRIO_PROCESS, 0, asked.nice)


def _set_descriptors(numbers: Sequence[int], fds: Sequence[int]) -> None:
    """Enter the first descriptor as folder; put the next three on the standard streams, the others on `numbers`."""
    os.fchdir(fds[0])
    targets = (0, 1, 2, *numbers)
    above = max(*targets, *fds) + 1
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, above) for fd in fds[1:]]
    for fd in fds:
        os.close(fd)
    for fd, target in zip(high, targets):
        os.dup2(fd, target, inheritable=True)
        os.close(fd)


def _set_signals(asked: Request) -> None:
    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:
        is_ignored = signal.getsignal(number) is signal.SIG_IGN
        if is_ignored and number not in asked.ignored:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        elif number in asked.ignored and not is_ignored:
            signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, asked.mask)


def _fresh_main() -> Dict[str, object]:
    names = vars(sys.modules["__main__"])
    names.clear()
    names.update(__name__="__main__", __doc__=None, __package__=None, __spec__=None, __builtins__=builtins)
    return names


def _run_script(script: str) -> None:
    names = _fresh_main()
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


def _run_module(module: str) -> None:
    runpy.run_module(module, None, "__main__", alter_sys=True)


def _hide_frames(error: BaseException) -> None:
    """Let Python print the error's traceback now, from the script's own frame on, and nothing at the end."""
    traceback = None if error.__traceback__ is None else error.__traceback__.tb_next
    sys.excepthook(type(error), error.with_traceback(traceback), traceback)
    sys.excepthook = lambda *_: None
