"""The actions for an MPI job's nodes after mpirun has ended: they end only by a command."""

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
PATIENT_STOP = Command(1, UID, 1, CommandKind.STOP, grace_seconds=10.0, is_graceful=True)
EXIT = Command(1, UID, 1, CommandKind.EXIT)

FIRST_GOOD = (exited_rank(0, 9, exit_code=0), exited_rank(1, 9, exit_code=0))
SECOND_GOOD = (exited_rank(2, 9, exit_code=0), exited_rank(3, 9, exit_code=0))
OVER = finished_node(0, *FIRST_GOOD, launcher=exited_launcher(9.5, 0, name="mpirun"))
FAILED = finished_node(0, launcher=exited_launcher(9.5, 255, name="mpirun"))


def commanded(current: NodeFacts, what: Command, at: float = 9.6) -> NodeFacts:
    return dataclasses.replace(current, command=what, command_sent_at=START + at)


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    facts: JobFacts
    actions: Sequence[Action]
    now: float = 10.0


CASES = (
    Case("all are ready", facts(ready_node(0), ready_node(1)), [SendCommand((0, 1), command(CommandKind.START))]),
    Case("mpirun works", facts(running_node(0, *FIRST_GOOD), running_node(1, *SECOND_GOOD)), []),
    Case(
        "all are done, and only node 0 ends by itself",
        facts(OVER, running_node(1, *SECOND_GOOD)),
        [SendCommand((0,), EXIT), SendCommand((1,), PATIENT_STOP)],
    ),
    Case(
        "what became of node 1's ranks isn't told yet", facts(OVER, running_node(1, rank(2))), [SendCommand((1,), STOP)]
    ),
    Case("node 1 was told", facts(OVER, commanded(running_node(1, rank(2)), STOP)), []),
    Case(
        "node 1 doesn't obey",
        facts(OVER, commanded(running_node(1, rank(2)), STOP)),
        [KillNode(1, "its agent did not end within 10 s")],
        now=9.6 + STOP.grace_seconds + COMMAND_TIMEOUT_SECONDS,
    ),
    Case("mpirun failed, and nobody knows yet why", facts(FAILED, running_node(1, rank(2))), [SendCommand((1,), STOP)]),
    Case(
        "mpirun failed, and no rank tells why",
        facts(FAILED, stopped_node(1)),
        [SendCommand((0, 1), EXIT)],
    ),
    Case(
        "what is left of mpirun is its own agent's to end",
        facts(running_node(0, rank(0), launcher=exited_launcher(9.5, 0, name="mpirun")), running_node(1, rank(2))),
        [],
    ),
    Case(
        "node 1 has not been heard since the operator began",
        facts(OVER, dataclasses.replace(running_node(1), agent=None)),
        [],
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_done_next(case: Case) -> None:
    now = START + case.now
    outcome = judge(mpi_job(), Status(), case.facts, now)

    assert list(decide(mpi_job(), case.facts, outcome, now, 1)) == case.actions


def test_a_node_that_does_not_obey_is_looked_at_in_time() -> None:
    current = facts(OVER, commanded(running_node(1, rank(2), reported_at=9.6), STOP))
    outcome = judge(mpi_job(), Status(), current, START + 10)
    find_silence_time = START + 9.6 + 3 * current.heartbeat_seconds

    wake = find_requeue_time(mpi_job(), current, outcome, START + 10)

    assert wake == min(find_silence_time, START + 9.6 + STOP.grace_seconds + COMMAND_TIMEOUT_SECONDS)
