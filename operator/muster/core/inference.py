"""Complete the observed facts before a decision: an ordered list of pure steps for each node."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.facts import JobFacts, NodeFacts, ProcessState
from muster.core.failure.lost_nodes import end_if_lost
from muster.core.failure.problems import POD_DELETED, with_problem
from muster.core.failure.termination_log import with_termination_message


@dataclass(frozen=True)
class InferenceContext:
    """A step's input besides the node. `observed` are the facts before any step.

    `started` is set if `previous` records a start. `attempt` is the number of that start, or of the next one.
    """

    job: Job
    previous: Status
    observed: JobFacts
    now: float
    started: bool
    attempt: int


def end_lost_node(node: NodeFacts, context: InferenceContext) -> NodeFacts:
    """If the node's machine is lost, end the node, or free its place."""
    return end_if_lost(node, context.observed, context.previous, context.now, started=context.started)


def drop_own_removal(node: NodeFacts, context: InferenceContext) -> NodeFacts:
    """Drop the problem of a deleted pod if it belongs to an attempt before the suspension: muster deleted that pod."""
    process, previous_attempts = node.process, 0 if context.started else context.previous.attempt
    if process.state is not ProcessState.MISSING or not 0 <= process.replacement < previous_attempts:
        return node
    if process.problem is None or process.problem.reason != POD_DELETED:
        return node
    return replace(node, process=replace(process, problem=None))


def count_starts(node: NodeFacts, context: InferenceContext) -> NodeFacts:
    """Raise the replacement of a missing node to match the attempt: every attempt had a process of the node."""
    process, attempts = node.process, context.previous.attempt
    if process.state is not ProcessState.MISSING or process.replacement >= attempts - 1:
        return node
    return replace(node, process=replace(process, replacement=attempts - 1))


def drop_past(node: NodeFacts, context: InferenceContext) -> NodeFacts:
    """Drop reports and commands of attempts before the job's suspension."""
    # The attempt has not started, so a missing node can't have a report or a command.
    if node.process.state is ProcessState.MISSING and not context.started:
        return node if node.agent is None and node.command is None else _without_agent(node)
    agent, command = node.agent, node.command
    if agent is not None and 0 < agent.report.attempt < context.attempt:
        return _without_agent(node)
    if command is not None and command.attempt < context.attempt:
        return replace(node, command=None, command_sent_at=None)
    return node


def read_last_message(node: NodeFacts, context: InferenceContext) -> NodeFacts:
    """Use the pod's termination log if the agent's last report was lost."""
    return with_termination_message(context.job, node)


def name_problem(node: NodeFacts, context: InferenceContext) -> NodeFacts:
    """Add the problem of an agent that never reported, or stopped reporting."""
    return with_problem(node, context.observed, context.now)


STEPS: tuple[Callable[[NodeFacts, InferenceContext], NodeFacts], ...] = (
    end_lost_node,
    drop_own_removal,
    count_starts,
    drop_past,
    read_last_message,
    name_problem,
)
"""Each step receives the result of the previous one."""


def infer(job: Job, previous: Status, facts: JobFacts, now: float) -> JobFacts:
    """Return the complete facts that judge, decide and summarise need, at `now` (Unix seconds)."""
    context = InferenceContext(job, previous, facts, now, previous.was_started, previous.current_attempt)
    return replace(facts, nodes=tuple(_apply_steps(node, context) for node in facts.nodes))


def _apply_steps(node: NodeFacts, context: InferenceContext) -> NodeFacts:
    for step in STEPS:
        node = step(node, context)
    return node


def _without_agent(node: NodeFacts) -> NodeFacts:
    return replace(node, agent=None, command=None, command_sent_at=None)
