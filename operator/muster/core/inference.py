"""What follows from facts before a decision: one ordered list of steps completes what a backend observed. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.facts import JobFacts, NodeFacts, ProcessState
from muster.core.failure.lost_nodes import without_lost
from muster.core.failure.problems import POD_DELETED, with_problem
from muster.core.failure.termination_log import with_termination_message


@dataclass(frozen=True)
class Circumstances:
    """What a step may ask besides the node: the job, its last status, the facts as they were observed, and the time.

    `started` says that `previous` tells of a start, `attempt` is its number or the next one's.
    """

    job: Job
    previous: Status
    observed: JobFacts
    now: float
    started: bool
    attempt: int


def end_lost_node(node: NodeFacts, at: Circumstances) -> NodeFacts:
    """Its machine is lost: the job goes on without it, or the node's place is free."""
    return without_lost(node, at.observed, at.previous, at.now, started=at.started)


def drop_own_removal(node: NodeFacts, at: Circumstances) -> NodeFacts:
    """Its pod of an earlier start went with the suspension: muster deleted it, or the operator before."""
    process, former = node.process, 0 if at.started else at.previous.attempt
    if process.state is not ProcessState.MISSING or not 0 <= process.replacement < former:
        return node
    if process.problem is None or process.problem.reason != POD_DELETED:
        return node
    return replace(node, process=replace(process, problem=None))


def count_starts(node: NodeFacts, at: Circumstances) -> NodeFacts:
    """Every start of the gang had a process of the node: one that saw none of them knows it from their number."""
    process, starts = node.process, at.previous.attempt
    if process.state is not ProcessState.MISSING or process.replacement >= starts - 1:
        return node
    return replace(node, process=replace(process, replacement=starts - 1))


def drop_past(node: NodeFacts, at: Circumstances) -> NodeFacts:
    """What agents of an earlier start said, and what they were told, is the past of a job that was suspended since."""
    # The attempt has not started, so no agent has reported or received anything.
    if node.process.state is ProcessState.MISSING and not at.started:
        return node if node.agent is None and node.command is None else _without_past(node)
    agent, command = node.agent, node.command
    if agent is not None and 0 < agent.report.attempt < at.attempt:
        return _without_past(node)
    if command is not None and command.attempt < at.attempt:
        return replace(node, command=None, commanded_at=None)
    return node


def read_last_message(node: NodeFacts, at: Circumstances) -> NodeFacts:
    """What its agent left in the pod's termination log stands for a last report that was lost."""
    return with_termination_message(at.job, node)


def name_problem(node: NodeFacts, at: Circumstances) -> NodeFacts:
    """Its facts and the time amount to a problem: an agent that was never heard, or not for a while."""
    return with_problem(node, at.observed, at.now)


STEPS: tuple[Callable[[NodeFacts, Circumstances], NodeFacts], ...] = (
    end_lost_node,
    drop_own_removal,
    count_starts,
    drop_past,
    read_last_message,
    name_problem,
)
"""In this order: each sees the node as the steps before it have left it."""


def infer(job: Job, previous: Status, facts: JobFacts, now: float) -> JobFacts:
    """The facts as judge, decide and summarise want them, at `now` (Unix seconds)."""
    at = Circumstances(job, previous, facts, now, previous.was_started, previous.current_attempt)
    return replace(facts, nodes=tuple(_completed(node, at) for node in facts.nodes))


def _completed(node: NodeFacts, at: Circumstances) -> NodeFacts:
    for step in STEPS:
        node = step(node, at)
    return node


def _without_past(node: NodeFacts) -> NodeFacts:
    return replace(node, agent=None, command=None, commanded_at=None)
