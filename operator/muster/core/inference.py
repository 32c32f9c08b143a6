"""Complete the observed facts before a decision: an ordered list of pure steps for each node."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.facts import AgentFacts, JobFacts, NodeFacts, ProcessState
from muster.core.failure.lost_nodes import end_if_lost
from muster.core.failure.problems import POD_DELETED, with_problem
from muster.core.failure.termination_log import with_termination_message
from muster_worker.contract.schema import AgentPhase


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
    # A restart keeps pods, so their numbers do not count attempts.
    if context.previous.last_restart is not None:
        return node
    process, attempts = node.process, context.previous.attempt
    if process.state is not ProcessState.MISSING or process.replacement >= attempts - 1:
        return node
    return replace(node, process=replace(process, replacement=attempts - 1))


def reuse_agent(node: NodeFacts, context: InferenceContext) -> NodeFacts:
    """After a restart, an agent whose ranks have ended is ready again, and a pod that has ended is missing."""
    previous, attempt = context.previous, context.attempt
    if previous.restarts is None or previous.last_restart is None:
        return node
    process, agent = node.process, node.current_agent
    is_earlier = process.replacement < previous.restarts.replacement
    if process.state is ProcessState.EXITED and previous.is_restarting and is_earlier:
        return _without_agent(replace(node, process=replace(process, state=ProcessState.MISSING, problem=None)))
    if process.state is not ProcessState.RUNNING or agent is None or agent.report.attempt >= attempt:
        return node
    # Something else stops this agent, so its pod will end and be replaced.
    if agent.terminated_at is not None:
        return _without_agent(node)
    # The agent still stops the ranks of the earlier attempt.
    if agent.report.phase != AgentPhase.ENDED:
        return node
    report = replace(agent.report, attempt=0, phase=AgentPhase.READY, ranks=(), metrics=(), launcher=None)
    command = node.command if node.command is not None and node.command.attempt >= attempt else None
    return replace(
        node,
        agent=AgentFacts(report, agent.last_report_at),
        command=command,
        command_sent_at=node.command_sent_at if command is not None else None,
    )


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
    message = node.process.termination_message
    # The pod ended between two attempts, so the message describes the earlier one.
    if message is not None and 0 < message.attempt < context.attempt:
        return node
    return with_termination_message(context.job, node)


def name_problem(node: NodeFacts, context: InferenceContext) -> NodeFacts:
    """Add the problem of an agent that never reported, or stopped reporting."""
    return with_problem(node, context.observed, context.now)


STEPS: tuple[Callable[[NodeFacts, InferenceContext], NodeFacts], ...] = (
    end_lost_node,
    drop_own_removal,
    count_starts,
    reuse_agent,
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
