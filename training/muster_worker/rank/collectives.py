"""Reports which collectives the rank has entered last, when the agent requests it because the rank hangs.

The main thread of a rank that hangs waits in C, so another thread answers. This thread waits for a byte in a named
pipe, which takes no processor time. Only ranks that use torch.distributed have the thread, from their first step on.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the C module of `signal`
import _thread
import fcntl
import os
import sys

from muster_worker.rank import stack_signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Tuple

REQUEST_SUFFIX = ".collectives-request"
"""Suffix of the named pipe, after the path of the rank's progress file. Each byte is a request."""

ANSWER_SUFFIX = ".collectives"
"""Suffix of the file with the answer, `{"groups": [...]}`. The file appears only when it is complete."""


class CollectivesResponder:
    """Starts the thread at the rank's first step."""

    def __init__(self, progress_path: str) -> None:
        self._path = progress_path
        self._is_stopped = False

    def start(self) -> None:
        """Start the thread, if this rank uses torch.distributed."""
        is_initialized = getattr(sys.modules.get("torch.distributed"), "is_initialized", None)
        if self._is_stopped or is_initialized is None or not is_initialized():
            return
        try:
            _thread.start_new_thread(_serve, (_open_pipe(self._path + REQUEST_SUFFIX), self._path + ANSWER_SUFFIX))
        except (OSError, RuntimeError):  # RuntimeError: no more threads
            return

    def stop(self) -> None:
        """Never start the thread: this process is a forked child of the rank."""
        self._is_stopped = True


def _open_pipe(path: str) -> int:
    try:
        os.unlink(path)  # the pipe of an earlier process of this rank
    except FileNotFoundError:
        pass
    os.mkfifo(path, 0o600)
    low_fd = os.open(
        path, os.O_RDWR | os.O_CLOEXEC
    )  # O_RDWR: the pipe always has a writer, so `read` gets no end of file
    try:
        return fcntl.fcntl(low_fd, fcntl.F_DUPFD_CLOEXEC, stack_signal.LOWEST_FD)
    finally:
        os.close(low_fd)


def _serve(pipe: int, answer_path: str) -> None:
    # Block all signals here, so that they interrupt the main thread as they would without this thread.
    _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
    try:
        identity = _identify(pipe)
        # The program may close the descriptor, and then another file may get its number.
        while _identify(pipe) == identity and os.read(pipe, 64):
            _answer(answer_path)
    except Exception:  # noqa: BLE001 - torch may raise anything, and the training must not see it
        return


def _identify(descriptor: int) -> Tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _answer(path: str) -> None:
    import json

    from muster_worker.rank import flight_recorder

    text = json.dumps({"groups": flight_recorder.read_groups()})
    temporary = path + ".new"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="ascii") as file:
        file.write(text)
    os.rename(temporary, path)
