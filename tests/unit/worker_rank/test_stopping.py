"""The stop file between an agent and its ranks, from both sides."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import muster_worker
from muster_worker.rank import progress_file, stop_file, stopping
from muster_worker.rank_group.graceful_stop import GracefulStop

LONG = 60.0


@pytest.fixture
def rank(tmp_path: Path) -> Iterator[Path]:
    """Make this process a rank whose agent has not created the stop file; yield its progress file."""
    path = tmp_path / "rank-0-1.progress"
    progress_file.create(str(path))
    yield path
    stopping.stop()


def start(progress: Path) -> progress_file.Writer:
    writer = progress_file.claim(str(progress))
    assert writer is not None
    stopping.start(writer, str(progress))
    return writer


def test_outside_muster_nothing_stops() -> None:
    assert not muster_worker.stopping()


def test_without_an_agent_of_a_node_nothing_stops(rank: Path) -> None:
    start(rank)
    assert not muster_worker.stopping()


def test_a_stop_file_of_another_size_is_ignored(rank: Path) -> None:
    (rank.parent / stop_file.NAME).write_bytes(b"")
    start(rank)
    assert not muster_worker.stopping()


def test_a_rank_stops_at_the_decided_call_and_stays_so(rank: Path) -> None:
    agent = GracefulStop(str(rank.parent))
    start(rank)
    assert not muster_worker.stopping()
    assert agent.begin([str(rank)], LONG)
    assert agent.stop_call_number == 2
    assert agent.decide(4)
    assert [muster_worker.stopping() for _ in range(4)] == [False, False, True, True]
    assert not agent.decide(9)


def test_a_rank_waits_in_its_next_call_for_the_decision(rank: Path) -> None:
    agent = GracefulStop(str(rank.parent))
    start(rank)
    muster_worker.stopping()
    agent.begin([str(rank)], LONG)
    answers: list[bool] = []
    caller = threading.Thread(target=lambda: answers.append(muster_worker.stopping()))
    caller.start()
    caller.join(0.05)
    assert answers == []
    agent.decide(agent.stop_call_number)
    caller.join(LONG)
    assert answers == [True]


def test_a_rank_whose_agent_is_gone_stops_by_itself(rank: Path) -> None:
    _, times = stop_file.create(str(rank.parent))
    start(rank)
    times[stop_file.WORD_WAIT_UNTIL] = time.monotonic() - 1
    assert muster_worker.stopping()


def test_no_rank_has_called_it(rank: Path, tmp_path: Path) -> None:
    agent = GracefulStop(str(rank.parent))
    start(rank)
    assert not agent.begin([str(rank), str(tmp_path / "missing")], LONG)
    assert (agent.stop_call_number, agent.next_poll_at) == (0, None)
    assert not agent.decide(7)
    assert not muster_worker.stopping()


def test_without_a_grace_period_nobody_waits(rank: Path) -> None:
    agent = GracefulStop(str(rank.parent))
    start(rank)
    muster_worker.stopping()
    assert not agent.begin([str(rank)], 0.0)


def test_a_forged_count_fits_into_a_report(rank: Path) -> None:
    agent = GracefulStop(str(rank.parent))
    start(rank).words[progress_file.WORD_STOPPING_CALLS] = 2**64 - 1
    assert agent.begin([str(rank)], LONG)
    assert agent.stop_call_number == 2**63 - 1


@pytest.mark.parametrize(("grace", "decision", "sigterm"), [(30.0, 5.0, 28.0), (9.0, 3.0, 7.0), (1.0, 1 / 3, 0.75)])
def test_time_limits_depend_on_the_grace_period(rank: Path, grace: float, decision: float, sigterm: float) -> None:
    agent = GracefulStop(str(rank.parent))
    start(rank)
    muster_worker.stopping()
    began = time.monotonic()
    agent.begin([str(rank)], grace)
    assert agent.next_poll_at == pytest.approx(began + decision, abs=0.1)
    assert agent.sigterm_at == pytest.approx(began + sigterm, abs=0.1)
    agent.decide(2)
    assert agent.next_poll_at == agent.sigterm_at
    agent.shorten(0.0)
    assert agent.is_sigterm_due


def test_the_next_attempt_has_a_file_of_its_own(rank: Path) -> None:
    last = GracefulStop(str(rank.parent))
    start(rank)
    muster_worker.stopping()
    last.begin([str(rank)], LONG)
    GracefulStop(str(rank.parent))
    last.decide(1)
    progress_file.create(str(rank))
    start(rank)
    assert not muster_worker.stopping()
