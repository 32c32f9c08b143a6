"""Facts of earlier attempts and pods, which muster drops before it decides."""

from dataclasses import replace

import pytest

from muster.api.status.restarts import NO_RESTARTS, RestartRecord
from muster.api.status.status import Condition, Status
from muster.core.fact_completion import complete_facts
from muster.core.facts import NodeFacts, ProcessFacts, ProcessState
from muster.core.failure.problems import POD_DELETED
from muster.core.problem import Problem
from muster_worker.contract.schema import CommandKind
from unit.core.builders import START, command, facts, job, rank, ready_node, running_node, stopped_node

FIRST_ATTEMPT = Status(attempt=1, start_time="2025-11-21T04:05:05Z")
RESUMED = Status(
    conditions=(
        Condition(type="Suspended", status="False", reason="Resumed", last_transition_time="2025-11-21T04:05:05Z"),
    ),
    attempt=1,
)
NODE_WITH_STOP = replace(ready_node(0), command=command(CommandKind.STOP, 2.0), command_sent_at=START)
NODE_WITH_EXIT = replace(
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


def infer_node(previous: Status, current: NodeFacts) -> NodeFacts:
    (completed,) = complete_facts(job(1), previous, facts(current), START).nodes
    return completed


@pytest.mark.parametrize(
    ("previous", "node_facts", "has_agent", "has_command"),
    [
        (Status(), running_node(0, rank(0)), True, True),
        (FIRST_ATTEMPT, running_node(0, rank(0)), True, True),
        (FIRST_ATTEMPT, without_pod(running_node(0, rank(0))), True, True),
        # Both are of the previous attempt.
        (RESUMED, stopped_node(0, rank(0)), False, False),
        (RESUMED, NODE_WITH_STOP, True, False),
        # The operator has sent Exit for the new attempt. The agent's report is of the previous one.
        (RESUMED, NODE_WITH_EXIT, False, True),
        # The ready agent ended with its pod.
        (Status(), without_pod(NODE_WITH_STOP), False, False),
    ],
)
def test_facts_of_an_earlier_attempt_are_dropped(
    previous: Status, node_facts: NodeFacts, *, has_agent: bool, has_command: bool
) -> None:
    result = infer_node(previous, node_facts)

    assert (result.agent is not None, result.command is not None) == (has_agent, has_command)
    assert result.command_sent_at is None or has_command


def test_a_drained_agent_gets_exit_only_once() -> None:
    drained = replace(NODE_WITH_EXIT, process=replace(NODE_WITH_EXIT.process, is_terminating=True))
    result = infer_node(RESTARTING, drained)

    assert (result.agent, result.command) == (None, NODE_WITH_EXIT.command)


@pytest.mark.parametrize(("attempts", "observed", "replacement"), [(0, -1, -1), (2, -1, 1), (2, 3, 3)])
def test_the_replacement_of_a_missing_pod_is_at_least_the_number_of_attempts_less_one(
    attempts: int, observed: int, replacement: int
) -> None:
    missing = replace(ready_node(0), process=ProcessFacts(ProcessState.MISSING, observed))

    assert infer_node(Status(attempt=attempts), missing).process.replacement == replacement


def test_an_existing_pod_keeps_its_replacement() -> None:
    assert infer_node(Status(attempt=5), ready_node(0)).process.replacement == ready_node(0).process.replacement


@pytest.mark.parametrize(
    ("previous", "replacement", "is_problem"),
    [
        (RESUMED, 0, False),
        # The pod was created after the suspension.
        (RESUMED, 1, True),
        (FIRST_ATTEMPT, 0, True),
        (Status(), 0, True),
    ],
)
def test_a_pod_deleted_by_a_suspension_is_no_problem(previous: Status, replacement: int, *, is_problem: bool) -> None:
    deleted = ProcessFacts(ProcessState.MISSING, replacement, problem=Problem(POD_DELETED, "a user deleted it"))
    result = infer_node(previous, replace(ready_node(0), process=deleted))

    assert (result.process.problem is not None) is is_problem
