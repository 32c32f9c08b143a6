"""A job is Queued while its nodes wait to be admitted together, until one of them is scheduled."""

from dataclasses import replace

import pytest

from muster.api.spec.job import Job
from muster.api.spec.queue import Queue
from muster.api.status.status import Status
from muster.core.facts import NodeFacts, ProcessFacts, ProcessState
from muster.core.failure.problems import SCHEDULING_GATED, UNSCHEDULABLE
from muster.core.problem import Problem
from unit.core.builders import T0, compute_status, facts, job, missing_node, node, with_spec


def waiting_node(number: int, reason: str | None = None, scheduled_at: float | None = None) -> NodeFacts:
    problem = None if reason is None else Problem(reason, "it waits")
    process = ProcessFacts(ProcessState.WAITING, problem=problem)
    return node(number, process=replace(process, scheduled_at=scheduled_at))


def queued_job(**queue: str) -> Job:
    return with_spec(job(), queue=Queue.model_validate(queue))


@pytest.mark.parametrize(
    ("a_job", "nodes", "phase"),
    [
        (job(), (missing_node(0), missing_node(1)), "Pending"),
        (job(), (waiting_node(0), waiting_node(1)), "Pending"),
        (job(), (waiting_node(0, SCHEDULING_GATED), waiting_node(1, SCHEDULING_GATED)), "Queued"),
        (queued_job(kueue="a"), (missing_node(0), missing_node(1)), "Queued"),
        (queued_job(volcano="a"), (waiting_node(0, UNSCHEDULABLE), waiting_node(1, UNSCHEDULABLE)), "Queued"),
        (queued_job(volcano="a"), (waiting_node(0, scheduled_at=T0), waiting_node(1, UNSCHEDULABLE)), "Pending"),
        (queued_job(volcano="a"), (waiting_node(0, scheduled_at=T0), waiting_node(1, scheduled_at=T0)), "Starting"),
    ],
)
def test_the_phase_until_all_nodes_are_scheduled(a_job: Job, nodes: tuple[NodeFacts, ...], phase: str) -> None:
    assert compute_status(a_job, Status(), facts(*nodes), T0 + 1).phase == phase
