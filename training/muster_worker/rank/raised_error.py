"""Records a rank's error in its progress file when it is raised, because its process may end seconds later.

A rank's `finally:` or its atexit functions may close its connections and then upload files. Its peers end first then,
with "Connection closed by peer". So the agent needs the error and its time from before the teardown.
"""

from __future__ import annotations

import _thread
import os
import sys
from time import monotonic

from muster_worker.rank import progress_file as layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType, TracebackType
    from typing import Any, Callable, List, Optional, Type

    from muster_worker.rank.progress_file import Writer

MAX_TEXT_CHARS = 1024  # `error_text.MAX_ERROR_CHARS`: importing that module would delay each rank's start
MAX_LEAVES = 5
MAX_FRAMES = 8
_HEADER = "Traceback (most recent call last):"
_FRAME_MARKS = ("\nException raised from ", "\nframe #")


def install(writer: Writer) -> None:
    """Record the uncaught exception of the main thread, before Python prints it and calls the atexit functions."""
    call_previous, process = sys.excepthook, (os.getpid(), _thread.get_ident())

    def excepthook(kind: Type[BaseException], error: BaseException, traceback: Optional[TracebackType]) -> None:
        # Python sets last_value. Scripts also call the hook themselves, to print an error that they have caught.
        is_uncaught = getattr(sys, "last_value", None) is error
        if is_uncaught and (os.getpid(), _thread.get_ident()) == process:
            _record(writer, error, layout.FLAG_UNCAUGHT)
        call_previous(kind, error, traceback)

    sys.excepthook = excepthook


def watch_teardown(writer: Writer, module: ModuleType) -> None:
    """Record the exception that is being handled when the rank closes its process groups."""
    import functools

    destroy: Callable[..., Any] = module.__dict__["destroy_process_group"]
    pid = os.getpid()

    @functools.wraps(destroy)
    def destroy_process_group(*args: Any, **kwargs: Any) -> Any:
        error = sys.exc_info()[1]
        if error is not None and os.getpid() == pid:
            _record(writer, error, 0)
        return destroy(*args, **kwargs)

    # A fork server has imported torch.distributed, which has copied the function.
    for namespace in (module, sys.modules.get("torch.distributed", module)):
        if namespace.__dict__.get("destroy_process_group") is destroy:
            namespace.__dict__["destroy_process_group"] = destroy_process_group


_recorded: Optional[BaseException] = None  # the exception that was being handled in the last teardown


def _record(writer: Writer, error: BaseException, flag: int) -> None:
    global _recorded  # noqa: PLW0603 - one main thread raises one error
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        return
    if flag and _recorded is not None and _follows(error, _recorded):
        writer.set_flag(flag)  # the teardown failed because of the same error
        return
    try:
        data = f"{_describe(error)}\0{_list_frames(error)}".encode("utf-8", "replace")[: layout.MAX_ERROR_BYTES]
    except Exception:  # noqa: BLE001 - an exception whose own code fails must be printed nevertheless
        return
    _recorded = None if flag else error
    writer.write_error(data, monotonic(), flag)


def _follows(error: Optional[BaseException], cause: BaseException) -> bool:
    """Whether `error` is `cause`, or was raised while it was handled."""
    for _ in range(MAX_FRAMES):
        if error is None or error is cause:
            return error is not None
        error = error.__cause__ or error.__context__
    return False


def _describe(error: BaseException) -> str:
    """Return the text of an exception as Python prints it, and that of an exception group's leaves."""
    leaves = _list_leaves(error)
    texts = [_describe_leaf(leaf) for leaf in leaves[:MAX_LEAVES]]
    text = "; ".join([*texts, "…"] if len(leaves) > MAX_LEAVES else texts)
    return text if len(text) <= MAX_TEXT_CHARS else text[: MAX_TEXT_CHARS - 1] + "…"


def _describe_leaf(error: BaseException) -> str:
    kind, name = type(error), type(error).__qualname__
    name = name if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{name}"
    message = str(error)
    if _HEADER in message:  # the traceback of another process: of a data loader, or of torch.multiprocessing.spawn
        from muster_worker.contract.error_text import find_error

        cause = find_error(message)
        if cause:
            return cause
    for mark in _FRAME_MARKS:  # torch adds its C++ stack
        message = message.partition(mark)[0]
    return f"{name}: {message.rstrip()}" if message else name


def _list_leaves(error: BaseException) -> List[BaseException]:
    parts = getattr(error, "exceptions", None)
    if not isinstance(parts, tuple) or not type(error).__name__.endswith("ExceptionGroup"):
        return [error]
    return [leaf for part in parts for leaf in _list_leaves(part)]


def _list_frames(error: BaseException) -> str:
    """Return the innermost frames as Python prints them, without their source lines."""
    frames: List[str] = []
    traceback = _list_leaves(error)[0].__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        frames.append(f'  File "{code.co_filename}", line {traceback.tb_lineno}, in {code.co_name}')
        traceback = traceback.tb_next
    return "\n".join(frames[-MAX_FRAMES:])
