"""`muster_worker.phase`: lets a training script announce work during which it completes no steps."""

from __future__ import annotations

import _thread
from time import monotonic

from muster_worker.rank import progress_file as layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import List, Optional, Type

    from muster_worker.rank.progress_file import Writer

DEFAULT_SECONDS = 3600.0
MAX_SECONDS = 86400.0
MAX_NAME_CHARS = layout.PHASE_NAME_BYTES


class Phase:
    """A phase of this rank: `with muster_worker.phase("eval"):`. It may be entered again after its end."""

    def __init__(self, name: str, seconds: float) -> None:
        self.name = name
        self._seconds = seconds
        self.ends_at = 0.0

    def __enter__(self) -> None:
        self.ends_at = monotonic() + self._seconds
        if _phases is not None:
            _phases.enter(self)

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        if _phases is not None:
            _phases.leave(self)


class _Phases:
    """Writes the innermost phase of the rank to its progress file."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._lock = _thread.allocate_lock()
        self._current_phase: List[Phase] = []

    def enter(self, phase: Phase) -> None:
        with self._lock:
            self._current_phase.append(phase)
            self._write()

    def leave(self, phase: Phase) -> None:
        with self._lock:
            self._current_phase = [entry for entry in self._current_phase if entry is not phase]
            self._write()

    def _write(self) -> None:
        if self._current_phase:
            self._writer.write_phase(self._current_phase[-1].name.encode("ascii"), self._current_phase[-1].ends_at)
        else:
            self._writer.end_phase(monotonic())


_phases: Optional[_Phases] = None


def phase(name: str, timeout: float = DEFAULT_SECONDS) -> Phase:
    """Announce that this rank completes no steps for some time: `with muster_worker.phase("eval"): evaluate(model)`.

    For at most `timeout` seconds muster does not treat this rank, or the ranks that wait for it, as hanging. Use it for
    evaluation, checkpoints and other long work between two steps. Outside muster and in child processes of a rank it
    does nothing. It raises `TypeError` or `ValueError`, also outside muster, for a name that isn't 1 to 32 printable
    ASCII characters, and for a timeout that isn't between 0 and 86,400 seconds.
    """
    if not isinstance(name, str):
        raise TypeError(f"name: expected text, found {type(name).__name__}")
    if not (0 < len(name) <= MAX_NAME_CHARS and name.isascii() and name.isprintable()):
        raise ValueError(f"name: expected 1 to {MAX_NAME_CHARS} printable ASCII characters, found {name[:64]!r}")
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise TypeError(f"timeout: expected a number of seconds, found {type(timeout).__name__}")
    if not 0 < timeout <= MAX_SECONDS:  # false for NaN, too
        raise ValueError(
            f"timeout: expected more than 0 and at most {MAX_SECONDS:.0f} seconds, found {str(timeout)[:64]}"
        )
    return Phase(name, float(timeout))


def start(writer: Writer, _progress_path: str) -> None:
    """Make `phase` write to the progress file: this process is the rank."""
    global _phases  # noqa: PLW0603 - `phase` is a plain function; the file belongs to the process
    _phases = _Phases(writer)


def stop() -> None:
    """Make `phase` do nothing: this process is a forked child of the rank."""
    global _phases  # noqa: PLW0603 - as above
    _phases = None


layout.start_in_rank(start, stop)
