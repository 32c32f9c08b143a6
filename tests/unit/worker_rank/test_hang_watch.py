"""Which ranks' stacks the agent writes to its log, and when. The ranks here have no process that could answer."""

import os
import socket
from collections.abc import Iterator

import pytest

from muster_worker.agent.log import Log
from muster_worker.agent.reports import Observation
from muster_worker.agent.state import ActivityChanged
from muster_worker.rank_group.hang_watch import MAX_CAPTURES, MAX_LINES, HangDetector, count_rank_lines
from muster_worker.rank_group.rank_links import RankLink

TIMEOUT = 100.0
DUE = 90.0


class Watched:
    """A hang watch of ranks 0 and 1, and the log that it writes to."""

    def __init__(self) -> None:
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        self._log = Log(writer)
        self._sockets = socket.socketpair()
        self.links = {rank: RankLink(end) for rank, end in enumerate(self._sockets)}
        self._watch = HangDetector(TIMEOUT, self._log)

    def check(self, now: float, *observations: Observation) -> list[ActivityChanged]:
        events = self._watch.check(dict(enumerate(observations)), self.links, now)
        return [event for event in events if isinstance(event, ActivityChanged)]

    def log(self) -> str:
        self._log.flush(10.0)
        try:
            return os.read(self._reader, 65536).decode()
        except BlockingIOError:
            return ""

    def close(self) -> None:
        for end in self._sockets:
            end.close()
        os.close(self._reader)


@pytest.fixture
def watched() -> Iterator[Watched]:
    result = Watched()
    yield result
    result.close()


def stepped(at: float) -> Observation:
    return Observation(step=3, stepped_at=at, first_stepped_at=0.0)


def test_a_rank_hangs_before_the_operator_decides_and_its_peers_with_it(watched: Watched) -> None:
    assert watched.check(DUE - 1, stepped(0.0), stepped(2.0)) == []
    assert watched.log() == ""
    watched.check(DUE, stepped(0.0), stepped(2.0))
    log = watched.log()
    assert "[muster] rank 0 has completed no step for 90 s\n[muster] rank 0 | no stack: the process does not" in log
    assert "[muster] rank 1 has completed no step for 88 s\n" in log


def test_a_peer_that_completes_steps_does_not_hang(watched: Watched) -> None:
    watched.check(DUE, stepped(0.0), stepped(DUE - 1))
    assert "rank 1" not in watched.log()


@pytest.mark.parametrize(
    "observation",
    [
        Observation(),
        Observation(step=0),
        Observation(step=0, stepped_at=0.0),  # the script has reported metrics
        Observation(step=3500, stepped_at=0.0, first_script_step=3500),
        Observation(step=3, stepped_at=0.0, first_stepped_at=0.0, phase="eval"),
        Observation(step=3, stepped_at=0.0, first_stepped_at=0.0, phase_ended_at=DUE - 1),
    ],
)
def test_ranks_that_do_not_hang(watched: Watched, observation: Observation) -> None:
    watched.check(DUE, observation)
    assert watched.log() == ""


def test_the_stacks_are_written_once_per_hang_and_the_activity_ends_with_the_next_step(watched: Watched) -> None:
    watched.check(DUE, stepped(0.0))
    watched.log()
    assert watched.check(DUE + 1, stepped(0.0)) == []
    assert watched.log() == ""
    assert watched.check(DUE + 2, stepped(DUE + 2)) == [ActivityChanged(0, None)]


def test_the_log_is_bounded(watched: Watched) -> None:
    for number in range(2 * MAX_CAPTURES):
        watched.check(2 * number * TIMEOUT + DUE, stepped(2 * number * TIMEOUT))
        watched.check((2 * number + 1) * TIMEOUT, stepped((2 * number + 1) * TIMEOUT))
    assert watched.log().count("completed no step") == MAX_CAPTURES


@pytest.mark.parametrize("ranks", [1, 8, 67, 128])
def test_all_ranks_together_write_at_most_the_maximum_number_of_lines(ranks: int) -> None:
    assert 60 <= count_rank_lines(ranks) <= MAX_LINES / ranks


def test_a_stopped_process_is_the_activity(watched: Watched) -> None:
    child = os.fork()
    if child == 0:
        os.kill(os.getpid(), 19)
        os._exit(0)
    os.waitpid(child, os.WUNTRACED)
    watched.links[0].pid = child
    try:
        assert watched.check(DUE, stepped(0.0)) == [ActivityChanged(0, "stopped by a signal")]
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert "no step for 90 s (stopped by a signal)" in watched.log()
