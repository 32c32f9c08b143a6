"""A job whose nodes wait to be admitted together is Queued; once one is scheduled it is not."""

from dataclasses import replace

import pytest

from muster.api.spec.job import Job
from muster.api.spec.queue import Queue
from muster.api.status.status import Status
from muster.core.facts import NodeFacts, Problem, ProcessFacts, ProcessState
from muster.core.failure.problems import SCHEDULING_GATED, UNSCHEDULABLE
from unit.core.builders import T0, compute_status, facts, job, missing_node, node


def waiting(number: int, reason: str | None = None, placed_at: float | None = None) -> NodeFacts:
    problem = None if reason is None else Problem(reason, "it waits")
    process = ProcessFacts(ProcessState.WAITING, problem=problem)
    return node(number, process=replace(process, scheduled_at=placed_at))


def queued(**queue: str) -> Job:
    plain = job()
    return plain.model_copy(update={"spec": plain.spec.model_copy(update={"queue": Queue.model_validate(queue)})})


@pytest.mark.parametrize(
    ("asked", "nodes", "phase"),
    [
        (job(), (missing_node(0), missing_node(1)), "Pending"),
        (job(), (waiting(0), waiting(1)), "Pending"),
        (job(), (waiting(0, SCHEDULING_GATED), waiting(1, SCHEDULING_GATED)), "Queued"),
        (queued(kueue="a"), (missing_node(0), missing_node(1)), "Queued"),
        (queued(volcano="a"), (waiting(0, UNSCHEDULABLE), waiting(1, UNSCHEDULABLE)), "Queued"),
        (queued(volcano="a"), (waiting(0, placed_at=T0), waiting(1, UNSCHEDULABLE)), "Pending"),
        (queued(volcano="a"), (waiting(0, placed_at=T0), waiting(1, placed_at=T0)), "Starting"),
    ],
)
def test_the_phase_until_the_gang_has_its_place(asked: Job, nodes: tuple[NodeFacts, ...], phase: str) -> None:
    assert compute_status(asked, Status(), facts(*nodes), T0 + 1).phase == phase
