"""Measures the busy time on a CUDA device with events. The host reads them when they are complete, and never waits."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, List, Tuple

MAX_PENDING = 32
"""While the device is this number of backward passes behind the host, no further passes are measured."""


class _Segment:
    """The work of the device's stream between two events. `steps` is 1 if a step ends with it, else 0."""

    def __init__(self, start: Any, end: Any) -> None:
        self.start = start
        self.end = end
        self.steps = 0


class DeviceTime:
    """Divides the time of the current stream into segments. Each segment ends with a backward pass."""

    def __init__(self, make_event: Callable[[], Any], is_capturing: Callable[[], bool]) -> None:
        self._make_event = make_event
        self._is_capturing = is_capturing  # while a CUDA graph is captured, no event may be recorded or read
        self._start: Any = None
        self._pending: List[_Segment] = []
        self._reusable_events: List[Any] = []

    def begin_segment(self) -> None:
        """Begin a segment, in which the rank does not wait for other ranks."""
        if len(self._pending) >= MAX_PENDING or self._is_capturing():
            return
        if self._start is None:
            self._start = self._reusable_events.pop() if self._reusable_events else self._make_event()
        self._start.record()

    def end_segment(self) -> None:
        """End the segment after the backward pass. From now on the stream may wait for other ranks."""
        if self._start is None or self._is_capturing():
            return
        end = self._reusable_events.pop() if self._reusable_events else self._make_event()
        end.record()
        self._pending.append(_Segment(self._start, end))
        self._start = None

    def end_step(self) -> Tuple[float, int]:
        """End a step. Returns the total seconds of newly completed segments, and the number of steps in them."""
        busy_seconds, steps = 0.0, 0
        if self._is_capturing():
            return busy_seconds, steps
        if self._pending:
            self._pending[-1].steps = 1
        while self._pending and self._pending[0].end.query():
            segment = self._pending.pop(0)
            busy_seconds += segment.start.elapsed_time(segment.end) / 1000
            steps += segment.steps
            self._reusable_events += (segment.start, segment.end)
        self.begin_segment()
        return busy_seconds, steps
