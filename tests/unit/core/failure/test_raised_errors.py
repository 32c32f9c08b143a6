"""The root cause is the rank that raised its own error first, whenever its process ends."""

from dataclasses import replace

import pytest

from muster.api.status.status import Status
from muster.core.facts import RankFacts
from muster.core.failure.failure import TEARDOWN_SECONDS, find_failure
from muster.core.judge import judge
from muster.core.outcome import Verdict
from unit.core.builders import (
    START,
    compute_status,
    exited_rank,
    facts,
    finished_node,
    job,
    mpi_job,
    rank,
    rank_without_peer,
    running_node,
    stopped_node,
    stopped_rank,
    with_error,
)

OWN = "ValueError: bad batch 17"
LOST_PEER = "torch.distributed.DistBackendError: NCCL error\nncclRemoteError: remote process exiting"


@pytest.mark.parametrize(
    "cause",
    [
        with_error(exited_rank(3, 12.0, exit_code=1), 9.0, OWN),
        with_error(exited_rank(3, 90.0, exit_code=1), 9.0, OWN),  # it uploaded its files first
        with_error(exited_rank(3, 10.5, signal=15), 9.0, OWN, uncaught=False),  # torchrun stopped it
        with_error(stopped_rank(3, 11.0), 9.0, OWN, uncaught=False),
        with_error(exited_rank(3, 11.0, signal=9, stopped=True), 9.0, OWN),
    ],
)
def test_a_rank_that_lost_a_peer_is_not_the_cause_of_a_rank_with_an_own_error(cause: RankFacts) -> None:
    late = with_error(exited_rank(2, 10.2, exit_code=1), 10.1, LOST_PEER)
    seen = facts(stopped_node(0, rank_without_peer(0, 10.0), stopped_rank(1, 11.0)), stopped_node(1, late, cause))
    failure = find_failure(job(), seen, has_started=True)
    assert failure is not None
    assert [(end.rank, end.error_line) for end in failure.root_causes] == [(3, OWN)]
    assert failure.at == START + 9.0


def test_a_printed_error_may_have_been_handled() -> None:
    printed = with_error(exited_rank(0, 13.0, signal=15, stopped=True), 2.0, "KeyError: 'optional'", printed=True)
    seen = facts(
        stopped_node(0, printed, stopped_rank(1, 13.0)), stopped_node(1, exited_rank(2, 12.0, signal=9), rank(3))
    )
    failure = find_failure(job(), seen, has_started=True)
    assert failure is not None
    assert [end.rank for end in failure.root_causes] == [2]


def test_a_printed_error_counts_if_the_others_only_lost_a_peer() -> None:
    printed = with_error(exited_rank(2, 11.0, signal=15, stopped=True), 9.0, OWN, printed=True)
    seen = facts(stopped_node(0, rank_without_peer(0, 10.0), stopped_rank(1, 11.0)), stopped_node(1, printed, rank(3)))
    failure = find_failure(job(), seen, has_started=True)
    assert failure is not None
    assert (failure.first.rank, failure.first.error_line) == (2, OWN)


def test_the_first_of_two_own_errors_is_the_cause_although_its_rank_ends_last() -> None:
    first = with_error(exited_rank(0, 15.0, exit_code=1), 9.0, OWN)
    second = with_error(exited_rank(2, 10.0, exit_code=3), 9.9, "RuntimeError: the loader is closed")
    failure = find_failure(
        job(), facts(finished_node(0, first, rank(1)), finished_node(1, second, rank(3))), has_started=True
    )
    assert failure is not None
    assert failure.first.rank == 0


def test_ranks_with_the_same_error_are_named_together() -> None:
    ranks = [with_error(exited_rank(number, 9.0 + number, exit_code=1), 9.0, OWN) for number in range(4)]
    status = compute_status(
        job(), Status(), facts(finished_node(0, *ranks[:2]), finished_node(1, *ranks[2:])), START + 20
    )
    assert status.message == f"All 4 ranks failed the same way: {OWN}"


@pytest.mark.parametrize(
    "end",
    [
        exited_rank(3, 10.5, signal=15),  # by torchrun
        exited_rank(3, 11.0, exit_code=0, stopped=True),  # by its own handler of SIGTERM
        exited_rank(3, 11.0, signal=9, stopped=True),
    ],
)
def test_the_message_is_the_error_however_the_rank_ends(end: RankFacts) -> None:
    seen = facts(
        stopped_node(0, stopped_rank(0, 11.0), stopped_rank(1, 11.0)), stopped_node(1, with_error(end, 9.0, OWN))
    )
    message = compute_status(job(), Status(), seen, START + 20).message
    assert message.startswith(f"Rank 3 on digits-1 failed: {OWN}"), message


def test_mpirun_kills_a_rank_that_has_raised_an_error() -> None:
    cause = with_error(exited_rank(2, 10.1, signal=9), 9.0, OWN)
    ended = facts(
        finished_node(0, exited_rank(0, 10.0, signal=9), exited_rank(1, 10.0, signal=9)),
        finished_node(1, cause, exited_rank(3, 10.0, signal=9)),
    )
    failure = find_failure(mpi_job(), ended, has_started=True)
    assert failure is not None
    assert failure.first.rank == 2


def test_a_rank_that_does_not_exit_is_named_at_once_and_has_failed_after_a_wait() -> None:
    stuck = facts(running_node(0, rank(0), rank(1)), running_node(1, with_error(rank(2, step=5), 9.0, OWN), rank(3)))
    before = compute_status(job(), Status(), stuck, START + 10)
    assert before.phase == "Running"
    assert f"rank 2 has not exited since its error: {OWN}" in before.message
    assert before.ranks is not None
    (detail,) = before.ranks.details
    assert (detail.rank, detail.reason, detail.message) == (2, "NotExited", f"it has not exited since its error: {OWN}")

    outcome = judge(job(), Status(), stuck, START + 10)
    assert (outcome.verdict, outcome.cause_deadline) == (Verdict.UNDECIDED, START + 9 + TEARDOWN_SECONDS)
    after = compute_status(job(), Status(), stuck, START + 9 + TEARDOWN_SECONDS)
    assert after.message.startswith(f"Rank 2 on digits-1 has not exited since its error at step 5: {OWN}")


def test_the_others_do_not_hang_while_they_wait_for_a_rank_that_raised_an_error() -> None:
    waiting = [replace(rank(number, step=5), last_step_at=START + 8, first_step_at=START + 1) for number in (0, 1, 3)]
    stuck = with_error(replace(rank(2, step=5), last_step_at=START + 8, first_step_at=START + 1), 9.0, OWN)
    seen = facts(running_node(0, *waiting[:2]), running_node(1, stuck, waiting[2]))
    now = START + 1000
    agents = [
        replace(node, agent=replace(node.agent, last_report_at=now)) for node in seen.nodes if node.agent is not None
    ]
    assert judge(job(), Status(), replace(seen, nodes=tuple(agents)), now).hang is None


def test_a_rank_with_an_own_error_and_a_failed_peer_is_stopped_without_a_wait() -> None:
    seen = facts(
        running_node(0, rank_without_peer(0, 10.0), rank(1)), running_node(1, with_error(rank(2), 9.0, OWN), rank(3))
    )
    outcome = judge(job(), Status(), seen, START + 10.1)
    assert outcome.verdict is Verdict.FAILED
    assert outcome.failure is not None
    assert outcome.failure.first.rank == 2
