"""`muster_worker.stopping`: tells a training script that it will be stopped, at the same call on all ranks."""

from __future__ import annotations

from time import monotonic, sleep

from muster_worker.rank import progress_file, stop_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from muster_worker.rank.progress_file import Writer

POLL_SECONDS = 0.002
"""Interval at which a rank reads the stop file. The nodes agree on the stop call in a few hundredths of a second."""


class _StopCalls:
    """Counts this rank's calls of `stopping` in its progress file, and compares them with the stop file."""

    def __init__(self, writer: Writer, path: str) -> None:
        self._progress_words = writer.words
        self._words, self._times = stop_file.read(path)
        self._is_stopping = False

    def is_stopping(self) -> bool:
        """Count a call, and return its result."""
        if not self._is_stopping:
            # Count the call before reading the stop file. The agent writes the file first and reads the counts then, so
            # that each call which it has not counted sees the file and waits.
            call = self._progress_words[progress_file.WORD_STOPPING_CALLS] + 1
            self._progress_words[progress_file.WORD_STOPPING_CALLS] = call
            self._is_stopping = self._has_to_stop(call)
        return self._is_stopping

    def _has_to_stop(self, call: int) -> bool:
        if not self._times[stop_file.WORD_WAIT_UNTIL]:
            return False
        while True:
            stop_call_number: int = self._words[stop_file.WORD_STOP_CALL]
            if stop_call_number:
                return call >= stop_call_number
            if monotonic() >= self._times[stop_file.WORD_WAIT_UNTIL]:
                return True
            sleep(POLL_SECONDS)


_stop_calls: Optional[_StopCalls] = None


def stopping() -> bool:
    """Return whether muster stops this rank: `if muster_worker.stopping(): save_checkpoint(); break`, once per step.

    All ranks of the job get True from the same call, for example the tenth. So call `stopping` equally often on every
    rank, from one thread. Later calls return True, too. The rank gets no SIGTERM until 2 s before SIGKILL. A call takes
    less than a microsecond. When a stop begins, one call waits for a few hundredths of a second, until the nodes have
    chosen the first call that returns True. Outside muster, on SageMaker and in child processes of a rank `stopping`
    returns False.
    """
    return _stop_calls is not None and _stop_calls.is_stopping()


def start(writer: Writer, progress_path: str) -> None:
    """Make `stopping` work: this process is the rank with this progress file."""
    global _stop_calls  # noqa: PLW0603 - `stopping` is a plain function; the file belongs to the process
    try:
        _stop_calls = _StopCalls(writer, stop_file.get_stop_file_path(progress_path))
    except (OSError, ValueError):  # there is no stop file, for example on SageMaker
        _stop_calls = None


def stop() -> None:
    """Make `stopping` return False: this process is a forked child of the rank."""
    global _stop_calls  # noqa: PLW0603 - as above
    _stop_calls = None


progress_file.start_in_rank(start, stop)
