"""The busy time of steps: its measurements in the progress file, and CUDA's events."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from muster_worker.rank import progress_file
from muster_worker.rank.busy_time import BusyTime
from muster_worker.rank.device_time import MAX_PENDING, DeviceTime
from muster_worker.rank_group import progress

NO_GRADIENTS = SimpleNamespace(param_groups=[{"params": [SimpleNamespace(grad=None)]}])


def claimed(folder: Path) -> tuple[str, progress_file.Writer]:
    path = str(folder / "progress")
    progress_file.create(path)
    writer = progress_file.claim(path)
    assert writer is not None
    return path, writer


def test_steps_are_measured_in_blocks_and_a_slow_step_does_not_count(tmp_path: Path) -> None:
    path, writer = claimed(tmp_path)
    busy_time, at = BusyTime(writer), 1000.0
    for step in range(200):
        assert (progress.read(path).busy_seconds is None) == (step < 33)
        at += 60.0 if step == 150 else 0.25
        busy_time.end_step(NO_GRADIENTS, at)
    assert progress.read(path).busy_seconds == pytest.approx(0.25)
    assert len(progress.read(path).busy_times) == progress_file.BUSY_TIMES


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([0.1] * 7, None),
        ([0.1] * 8, 0.1),
        ([0.1] * 8 + [9.0] * 7, 0.1),
        ([0.1] * 8 + [math.nan, math.inf, -1.0, 0.0, 1e300], 0.1),
        ([math.nan] * 32, None),
    ],
)
def test_forged_measurements_do_not_count(tmp_path: Path, times: Sequence[float], expected: float | None) -> None:
    path, writer = claimed(tmp_path)
    for index, seconds in enumerate(times):
        writer.times[progress_file.WORD_BUSY_TIMES + index] = seconds
    writer.words[progress_file.WORD_BUSY_COUNT] = len(times)
    assert progress.read(path).busy_seconds == expected


def test_an_unknown_optimizer_switches_the_measurement_off(tmp_path: Path) -> None:
    path, writer = claimed(tmp_path)
    busy_time = BusyTime(writer)
    for step in range(40):
        busy_time.end_step(object(), float(step))
    assert progress.read(path).busy_times == ()


@dataclass
class Device:
    """A CUDA stream: work and events in order. Events are complete once the stream has run them."""

    queue: list["Event | float"] = field(default_factory=list)
    clock: float = 0.0
    events: int = 0
    is_capturing: bool = False

    def make_event(self) -> "Event":
        self.events += 1
        return Event(self)

    def run(self) -> None:
        """Do all queued work."""
        for entry in self.queue:
            if isinstance(entry, Event):
                entry.at = self.clock
            else:
                self.clock += entry
        self.queue.clear()


@dataclass(eq=False)
class Event:
    device: Device
    at: float | None = None

    def record(self) -> None:
        assert not self.device.is_capturing
        self.at = None
        self.device.queue.append(self)

    def query(self) -> bool:
        assert not self.device.is_capturing
        return self.at is not None

    def elapsed_time(self, end: "Event") -> float:
        assert self.at is not None
        assert end.at is not None
        return (end.at - self.at) * 1000


def step(device: Device, time: DeviceTime, passes: int = 1) -> tuple[float, int]:
    """Queue a step: 0.1 s of work per backward pass, 0.5 s in which the stream waits for its bucket, the optimizer."""
    for _ in range(passes):
        device.queue.append(0.1)
        time.end_segment()
        device.queue.append(0.5)
        time.begin_segment()
    device.queue.append(0.01)
    return time.end_step()


def add(results: Sequence[tuple[float, int]]) -> tuple[float, int]:
    return sum(seconds for seconds, _ in results), sum(steps for _, steps in results)


@pytest.mark.parametrize("passes", [1, 3])
def test_the_waits_of_the_device_do_not_count(passes: int) -> None:
    device = Device()
    time = DeviceTime(device.make_event, lambda: device.is_capturing)
    results = [time.end_step()]
    for _ in range(10):
        results.append(step(device, time, passes))
        device.run()
    results.append(time.end_step())
    seconds, steps = add(results)
    assert steps == 10
    assert seconds == pytest.approx(passes)
    assert device.events <= 4 * passes + 2


def test_a_slow_device_needs_few_events_and_is_never_waited_for() -> None:
    device = Device()
    time = DeviceTime(device.make_event, lambda: device.is_capturing)
    time.end_step()
    assert add([step(device, time) for _ in range(10 * MAX_PENDING)]) == (0.0, 0)
    assert device.events <= 2 * MAX_PENDING + 2
    device.run()
    time.end_step()
    results = []
    for _ in range(4):
        results.append(step(device, time))
        device.run()
    seconds, steps = add(results)
    assert seconds / steps == pytest.approx(0.1)


def test_no_event_is_used_while_a_graph_is_captured() -> None:
    device = Device()
    time = DeviceTime(device.make_event, lambda: device.is_capturing)
    device.is_capturing = True
    assert [step(device, time) for _ in range(3)] == [(0.0, 0)] * 3
    device.is_capturing = False
    time.end_step()
    step(device, time)
    device.run()
    seconds, steps = time.end_step()
    assert steps == 1
    assert seconds == pytest.approx(0.1)
