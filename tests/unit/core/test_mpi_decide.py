"""The actions for the nodes of an MPI job: nodes without mpirun end only by a command."""

import dataclasses
from collections.abc import Sequence

import pytest

from muster.api.status.status import Status
from muster.core.actions import Action, KillNode, SendCommand
from muster.core.decide import COMMAND_TIMEOUT_SECONDS, decide, find_requeue_time
from muster.core.facts import JobFacts, NodeFacts
from muster.core.judge import judge
from muster_worker.contract.schema import Command, CommandKind
from unit.core.builders import (
    START,
    UID,
    command,
    exited_launcher,
    exited_rank,
    facts,
    finished_node,
    mpi_job,
    rank,
    ready_node,
    running_node,
    stopped_node,
)

STOP = Command(1, UID, 1, CommandKind.STOP, grace_seconds=2.0)
GRACEFUL_STOP = Command(1, UID, 1, CommandKind.STOP, grace_seconds=10.0, is_graceful=True)
EXIT = Command(1, UID, 1, CommandKind.EXIT)

SUCCEEDED_RANKS_0 = (exited_rank(0, 9, exit_code=0), exited_rank(1, 9, exit_code=0))
SUCCEEDED_RANKS_1 = (exited_rank(2, 9, exit_code=0), exited_rank(3, 9, exit_code=0))
SUCCEEDED_NODE = finished_node(0, *SUCCEEDED_RANKS_0, launcher=exited_launcher(9.5, 0, name="mpirun"))
FAILED_NODE = finished_node(0, launcher=exited_launcher(9.5, 255, name="mpirun"))


def with_command(current: NodeFacts, command_sent: Command, at: float = 9.6) -> NodeFacts:
    return dataclasses.replace(current, command=command_sent, command_sent_at=START + at)


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    facts: JobFacts
    actions: Sequence[Action]
    now: float = 10.0


CASES = (
    Case("all are ready", facts(ready_node(0), ready_node(1)), [SendCommand((0, 1), command(CommandKind.START))]),
    Case("mpirun runs", facts(running_node(0, *SUCCEEDED_RANKS_0), running_node(1, *SUCCEEDED_RANKS_1)), []),
    Case(
        "all ranks have succeeded, and only node 0 ends without a command",
        facts(SUCCEEDED_NODE, running_node(1, *SUCCEEDED_RANKS_1)),
        [SendCommand((0,), EXIT), SendCommand((1,), GRACEFUL_STOP)],
    ),
    Case(
        "node 1 has not reported the end of its ranks",
        facts(SUCCEEDED_NODE, running_node(1, rank(2))),
        [SendCommand((1,), STOP)],
    ),
    Case("node 1 has received Stop", facts(SUCCEEDED_NODE, with_command(running_node(1, rank(2)), STOP)), []),
    Case(
        "node 1 does not obey",
        facts(SUCCEEDED_NODE, with_command(running_node(1, rank(2)), STOP)),
        [KillNode(1, "its agent did not end within 10 s")],
        now=9.6 + STOP.grace_seconds + COMMAND_TIMEOUT_SECONDS,
    ),
    Case(
        "mpirun failed, and the cause is not known yet",
        facts(FAILED_NODE, running_node(1, rank(2))),
        [SendCommand((1,), STOP)],
    ),
    Case(
        "mpirun failed, and no rank has reported a cause",
        facts(FAILED_NODE, stopped_node(1)),
        [SendCommand((0, 1), EXIT)],
    ),
    Case(
        "mpirun has exited, and its agent still ends its processes",
        facts(running_node(0, rank(0), launcher=exited_launcher(9.5, 0, name="mpirun")), running_node(1, rank(2))),
        [],
    ),
    Case(
        "node 1 has not reported since the operator's start",
        facts(SUCCEEDED_NODE, dataclasses.replace(running_node(1), agent=None)),
        [],
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_next_actions(case: Case) -> None:
    now = START + case.now
    outcome = judge(mpi_job(), Status(), case.facts, now)

    assert list(decide(mpi_job(), case.facts, outcome, now, 1)) == case.actions


def test_the_job_is_requeued_for_a_node_that_does_not_obey() -> None:
    current = facts(SUCCEEDED_NODE, with_command(running_node(1, rank(2), reported_at=9.6), STOP))
    outcome = judge(mpi_job(), Status(), current, START + 10)
    find_silence_time = START + 9.6 + 3 * current.heartbeat_seconds

    requeue_at = find_requeue_time(mpi_job(), current, outcome, START + 10)

    assert requeue_at == min(find_silence_time, START + 9.6 + STOP.grace_seconds + COMMAND_TIMEOUT_SECONDS)
