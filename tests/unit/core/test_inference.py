"""The facts that are dropped before a decision."""

from dataclasses import replace

import pytest

from muster.api.status.restarts import NO_RESTARTS, RestartRecord
from muster.api.status.status import Condition, Status
from muster.core.facts import NodeFacts, Problem, ProcessFacts, ProcessState
from muster.core.failure.problems import POD_DELETED
from muster.core.inference import infer
from muster_worker.contract.schema import CommandKind
from unit.core.builders import START, command, facts, job, rank, ready_node, running_node, stopped_node

FIRST = Status(attempt=1, start_time="2025-11-21T04:05:05Z")
RESUMED = Status(
    conditions=(
        Condition(type="Suspended", status="False", reason="Resumed", last_transition_time="2025-11-21T04:05:05Z"),
    ),
    attempt=1,
)
TOLD = replace(ready_node(0), command=command(CommandKind.STOP, 2.0), command_sent_at=START)
TOLD_SINCE = replace(
    stopped_node(0, rank(0)), command=replace(command(CommandKind.EXIT), attempt=2), command_sent_at=START
)
RESTARTING = Status(
    attempt=2,
    restarts=NO_RESTARTS.model_copy(
        update={
            "total": 1,
            "is_pending": True,
            "history": (
                RestartRecord(
                    attempt=1, reason="RankFailed", message="", counts_as="Failure", at="2025-11-21T04:05:05Z"
                ),
            ),
        }
    ),
)


def without_pod(current: NodeFacts) -> NodeFacts:
    return replace(current, process=ProcessFacts(ProcessState.MISSING, 0))


def inferred(previous: Status, current: NodeFacts) -> NodeFacts:
    (found,) = infer(job(1), previous, facts(current), START).nodes
    return found


@pytest.mark.parametrize(
    ("previous", "known", "has_agent", "has_command"),
    [
        (Status(), running_node(0, rank(0)), True, True),
        (FIRST, running_node(0, rank(0)), True, True),
        (FIRST, without_pod(running_node(0, rank(0))), True, True),
        # Both are of the start before.
        (RESUMED, stopped_node(0, rank(0)), False, False),
        (RESUMED, TOLD, True, False),
        # The operator has sent Exit since, and the agent's report of its end is late.
        (RESUMED, TOLD_SINCE, False, True),
        # The agent that was ready ended with its pod.
        (Status(), without_pod(TOLD), False, False),
    ],
)
def test_the_past_is_left_out(previous: Status, known: NodeFacts, *, has_agent: bool, has_command: bool) -> None:
    result = inferred(previous, known)

    assert (result.agent is not None, result.command is not None) == (has_agent, has_command)
    assert result.command_sent_at is None or has_command


def test_a_drained_agent_is_told_to_exit_only_once() -> None:
    drained = replace(TOLD_SINCE, process=replace(TOLD_SINCE.process, is_terminating=True))
    result = inferred(RESTARTING, drained)

    assert (result.agent, result.command) == (None, TOLD_SINCE.command)


@pytest.mark.parametrize(("starts", "seen", "replacement"), [(0, -1, -1), (2, -1, 1), (2, 3, 3)])
def test_the_number_of_attempts_reveals_unobserved_pods(starts: int, seen: int, replacement: int) -> None:
    vanished = replace(ready_node(0), process=ProcessFacts(ProcessState.MISSING, seen))

    assert inferred(Status(attempt=starts), vanished).process.replacement == replacement


def test_a_pod_that_is_there_has_its_own_replacement() -> None:
    assert inferred(Status(attempt=5), ready_node(0)).process.replacement == ready_node(0).process.replacement


@pytest.mark.parametrize(
    ("previous", "replacement", "is_problem"),
    [
        (RESUMED, 0, False),
        # Another pod, created since.
        (RESUMED, 1, True),
        (FIRST, 0, True),
        (Status(), 0, True),
    ],
)
def test_a_pod_deleted_by_a_suspension_is_no_problem(previous: Status, replacement: int, *, is_problem: bool) -> None:
    deleted = ProcessFacts(ProcessState.MISSING, replacement, problem=Problem(POD_DELETED, "somebody deleted it"))
    result = inferred(previous, replace(ready_node(0), process=deleted))

    assert (result.process.problem is not None) is is_problem
