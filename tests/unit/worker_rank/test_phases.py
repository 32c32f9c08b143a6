"""`muster_worker.phase`, and what the agent reads of it."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster_worker.rank import phases, progress_file
from muster_worker.rank_group import progress
from muster_worker.rank_group.progress import MAX_PHASE_SECONDS, Progress


@pytest.fixture
def path(tmp_path: Path) -> Iterator[str]:
    """The progress file of this process, which acts as a rank."""
    path = str(tmp_path / "rank-0-1.progress")
    progress_file.create(path)
    writer = progress_file.claim(path)
    assert writer is not None
    phases.start(writer, path)
    yield path
    phases.stop()


def current(path: str) -> str | None:
    return progress.read(path).find_phase(time.monotonic())


def test_a_rank_is_in_a_phase_until_its_end(path: str) -> None:
    assert current(path) is None
    assert progress.read(path).phase_ended_at is None
    with phases.phase("eval"):
        assert current(path) == "eval"
        with phases.phase("save"):
            assert current(path) == "save"
        assert current(path) == "eval"
        assert progress.read(path).phase_ended_at is None
    assert current(path) is None
    ended_at = progress.read(path).phase_ended_at
    assert ended_at is not None
    assert time.monotonic() - 60 < ended_at <= time.monotonic()


def test_a_phase_that_raises_has_ended(path: str) -> None:
    with pytest.raises(ZeroDivisionError), phases.phase("eval"):
        raise ZeroDivisionError
    assert current(path) is None


def test_phases_of_two_threads_end_in_any_order(path: str) -> None:
    first, second = phases.phase("eval"), phases.phase("save")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert current(path) == "save"
    second.__exit__(None, None, None)
    assert current(path) is None


def test_a_report_and_a_phase_do_not_disturb_each_other(path: str) -> None:
    with phases.phase("x" * 32):
        seen = progress.read(path)
        assert (seen.phase, seen.reported_step, seen.optimizer_steps) == ("x" * 32, None, 0)


def test_the_next_program_of_the_rank_starts_without_a_phase(path: str) -> None:
    phases.phase("eval").__enter__()
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    data = bytearray(Path(path).read_bytes())
    data[8:16] = child.to_bytes(8, "little")  # the claimer has ended
    Path(path).write_bytes(data)
    assert progress_file.claim(path) is not None
    assert current(path) is None


@pytest.mark.parametrize(
    ("ends_at", "expected"),
    [
        (None, None),
        (99.0, None),
        (100.0, None),
        (101.0, "eval"),
        (100.0 + MAX_PHASE_SECONDS, "eval"),
        (101.0 + MAX_PHASE_SECONDS, None),
        (1e300, None),
    ],
)
def test_a_phase_has_a_limit(ends_at: float | None, expected: str | None) -> None:
    assert Progress(phase="eval", phase_ends_at=ends_at).find_phase(100.0) == expected


@pytest.mark.parametrize("name", ["", "x" * 33, "é", "a\n", "\0"])
def test_wrong_names(name: str) -> None:
    with pytest.raises(ValueError, match="name: expected 1 to 32 printable"):
        phases.phase(name)


@pytest.mark.parametrize("timeout", [0, -1, 86401, float("nan"), float("inf"), 10**400])
def test_wrong_timeouts(timeout: float) -> None:
    with pytest.raises(ValueError, match="timeout: expected more than 0"):
        phases.phase("eval", timeout)


@pytest.mark.parametrize(("name", "timeout"), [(3, 1), ("eval", "60"), ("eval", None), ("eval", True)])
def test_wrong_types(name: object, timeout: object) -> None:
    with pytest.raises(TypeError, match="expected"):
        phases.phase(name, timeout)  # type: ignore[arg-type]


def test_outside_of_muster_a_phase_does_nothing() -> None:
    with phases.phase("eval", 5):
        pass
