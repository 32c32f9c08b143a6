"""`muster_worker.report`: lets a training script report its step and metrics."""

from __future__ import annotations

import _thread
import math
import operator
from time import monotonic

from muster_worker.rank import progress_file as layout

try:
    from _json import encode_basestring_ascii as quote  # the C module: importing `json` would take 10 ms per rank
except ImportError:
    from json.encoder import py_encode_basestring_ascii as quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Optional, SupportsFloat, SupportsIndex, Tuple

    from muster_worker.rank.progress_file import Writer

MAX_NAME_CHARS = 64
MAX_STEP = 2**63 - 1


class _Reporter:
    """Writes the rank's latest step and metrics to its progress file."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._lock = _thread.allocate_lock()
        self._step: Optional[int] = None
        self._first_step: Optional[int] = None
        self._advanced_at: Optional[float] = None
        self._total_steps: Optional[int] = None
        self._metrics: Dict[str, float] = {}

    @property
    def step(self) -> Optional[int]:
        """The step that was reported last."""
        return self._step

    def report(self, step: Optional[int], total_steps: Optional[int], metrics: Dict[str, float]) -> None:
        with self._lock:
            at = monotonic()
            step = self._step if step is None else step
            first_step = step if self._first_step is None else self._first_step
            total_steps = self._total_steps if total_steps is None else total_steps
            advanced_at = self._advanced_at
            if advanced_at is None and step is not None and first_step is not None and step > first_step:
                advanced_at = at
            all_metrics = {**self._metrics, **metrics}
            text = _encode((step, first_step, total_steps), advanced_at, all_metrics)
            if len(text) > layout.MAX_REPORT_BYTES:
                self._writer.set_flag(layout.FLAG_REPORT_FULL)
                return
            self._step, self._first_step, self._advanced_at, self._metrics = step, first_step, advanced_at, all_metrics
            self._total_steps = total_steps
            self._writer.write_report(text, at)


_FORMAT = '{{"step":{},"first_step":{},"total_steps":{},"advanced_at":{},"metrics":{{{}}}}}'


def _encode(steps: Tuple[Optional[int], ...], advanced_at: Optional[float], metrics: Dict[str, float]) -> bytes:
    """Encode a report as JSON. `steps` are in the order of the format. All numbers are finite."""
    # A step may be of a subclass of int with its own representation.
    counts = ("null" if count is None else int.__repr__(count) for count in steps)
    at = "null" if advanced_at is None else repr(advanced_at)
    values = ",".join(f"{quote(name)}:{value!r}" for name, value in metrics.items())
    return _FORMAT.format(*counts, at, values).encode("ascii")


_reporter: Optional[_Reporter] = None


def report(
    step: Optional[SupportsIndex] = None, *, total_steps: Optional[SupportsIndex] = None, **metrics: SupportsFloat
) -> None:
    """Report this rank's step and metrics: `muster_worker.report(step=120, loss=loss.item())`.

    muster shows each value until the script reports a new one. A reported step replaces the count of optimizer steps.
    `total_steps` is the number of steps of the whole training, from which muster computes the percentage and the
    remaining time. A call takes a few microseconds and makes no system call. Outside muster and in child processes of a
    rank it does nothing. It ignores infinite and NaN values. If all names and values together exceed 3,900 bytes,
    `report` drops them, and the node's log says so once. It raises `TypeError` or `ValueError`, also outside muster,
    for a step that isn't an integer from 0 on, for a total that isn't an integer from 1 on, for a value that isn't a
    number, and for a name longer than 64 characters.
    """
    checked_step = None if step is None else _check_step("step", step, 0)
    checked_total = None if total_steps is None else _check_step("total_steps", total_steps, 1)
    checked_values = {name: _check_value(name, value) for name, value in metrics.items()}
    if _reporter is not None:
        finite_values = {name: value for name, value in checked_values.items() if math.isfinite(value)}
        _reporter.report(checked_step, checked_total, finite_values)


def is_rank() -> bool:
    """Whether this process is a rank of muster."""
    return _reporter is not None


def get_step() -> Optional[int]:
    """Return the step that was reported last; None without one."""
    return None if _reporter is None else _reporter.step


def start(writer: Writer, _progress_path: str) -> None:
    """Make `report` write to the progress file: this process is the rank."""
    global _reporter  # noqa: PLW0603 - `report` is a plain function; the file belongs to the process
    _reporter = _Reporter(writer)


def stop() -> None:
    """Make `report` do nothing: this process is a forked child of the rank."""
    global _reporter  # noqa: PLW0603 - as above
    _reporter = None


def _check_step(name: str, step: SupportsIndex, minimum: int) -> int:
    try:
        number = operator.index(step)
    except TypeError:
        raise TypeError(f"{name}: expected a whole number, found {type(step).__name__}") from None
    if isinstance(step, bool) or not minimum <= number <= MAX_STEP:
        raise ValueError(f"{name}: expected a whole number from {minimum} on, found {step!r}")
    return number


def _check_value(name: str, value: SupportsFloat) -> float:
    if len(name) > MAX_NAME_CHARS:
        raise ValueError(f"{name[:MAX_NAME_CHARS]}...: the name of a metric has at most {MAX_NAME_CHARS} characters")
    if isinstance(value, (str, bytes, bool)):
        raise TypeError(f"{name}: expected a number, found {type(value).__name__}")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise TypeError(f"{name}: expected one number, found {type(value).__name__}") from None


layout.start_in_rank(start, stop)
