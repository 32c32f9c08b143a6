"""Lost connections before their cause: the ranks run on until the rank that closed the connections has ended."""

from dataclasses import replace

import pytest

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.actions import SendCommand
from muster.core.decide import decide, find_requeue_time
from muster.core.facts import JobFacts
from muster.core.judge import judge
from muster.core.outcome import Verdict
from muster_worker.contract.schema import CommandKind
from unit.core.builders import (
    START,
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
)

WITHOUT_CAUSE = facts(running_node(0, rank_without_peer(0, 10.0), rank(1)), running_node(1, rank(2), rank(3)))
EARLY_EXIT = facts(
    running_node(0, rank_without_peer(0, 10.0), rank(1)), running_node(1, exited_rank(2, 9.9, exit_code=0), rank(3))
)
"""Rank 2 exited with code 0, which explains the lost connection."""

STOPPED = facts(stopped_node(0, rank_without_peer(0, 10.0), stopped_rank(1, 11.0)), running_node(1, rank(2), rank(3)))
ALL_ENDED = facts(
    finished_node(0, rank_without_peer(0, 10.0), rank_without_peer(1, 10.0)),
    finished_node(1, rank_without_peer(2, 10.1), exited_rank(3, 10.2, signal=15)),
)
SIGTERM = facts(running_node(0, exited_rank(0, 10.0, signal=15), rank(1)), running_node(1, rank(2), rank(3)))


def test_no_rank_is_stopped_before_the_one_that_closed_the_connections_may_have_ended() -> None:
    outcome = judge(job(), Status(), WITHOUT_CAUSE, START + 10.5)

    assert outcome.verdict is Verdict.UNDECIDED
    assert decide(job(), WITHOUT_CAUSE, outcome, START + 10.5, leader_term=1) == ()
    assert find_requeue_time(job(), WITHOUT_CAUSE, outcome, START + 10.5) == START + 11.0


def test_a_cause_that_appears_in_this_time_is_the_root_cause() -> None:
    node = running_node(1, exited_rank(2, 10.3, exit_code=5), rank(3))
    outcome = judge(job(), Status(), replace(WITHOUT_CAUSE, nodes=(WITHOUT_CAUSE.nodes[0], node)), START + 10.5)

    assert outcome.verdict is Verdict.FAILED
    assert outcome.failure is not None
    assert [end.rank for end in outcome.failure.root_causes] == [2]


@pytest.mark.parametrize(
    ("of_job", "job_facts", "now"),
    [
        pytest.param(job(), WITHOUT_CAUSE, START + 11.0, id="no cause in time"),
        pytest.param(job(), EARLY_EXIT, START + 10.1, id="a rank that exited early"),
        pytest.param(job(), STOPPED, START + 10.1, id="stopped already"),
        pytest.param(job(), ALL_ENDED, START + 10.3, id="no rank runs"),
        pytest.param(job(), SIGTERM, START + 10.1, id="no lost connection"),
        pytest.param(mpi_job(), WITHOUT_CAUSE, START + 10.1, id="mpirun"),
    ],
)
def test_a_failure_ends_the_job_at_once_if_no_other_cause_may_follow(
    of_job: Job, job_facts: JobFacts, now: float
) -> None:
    assert judge(of_job, Status(), job_facts, now).verdict is Verdict.FAILED


def test_the_ranks_are_stopped_once_the_time_is_over() -> None:
    outcome = judge(job(), Status(), WITHOUT_CAUSE, START + 11.0)

    actions = decide(job(), WITHOUT_CAUSE, outcome, START + 11.0, leader_term=1)
    assert [action.command.kind for action in actions if isinstance(action, SendCommand)] == [CommandKind.STOP]
