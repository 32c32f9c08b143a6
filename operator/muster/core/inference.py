"""Complete the observed facts of each node before a decision, in an ordered list of steps."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.facts import AgentFacts, JobFacts, NodeFacts, ProcessState
from muster.core.failure.problems import POD_DELETED, end_if_lost, with_problem
from muster.core.failure.termination_log import with_termination_message
from muster_worker.contract.schema import AgentPhase


@dataclass(frozen=True)
class InferenceContext:
    """The input of a step besides the node. `observed` are the facts before the first step.

    `has_started` is set if `previous` records a start. `attempt` is the number of that start, or of the next one.
    """

    job: Job
    previous: Status
    observed: JobFacts
    now: float
    has_started: bool
    attempt: int


def end_lost_node(node: NodeFacts, context: InferenceContext) -> NodeFacts:
    """If the node's machine is lost, mark the node as ended, or as missing so that it can be replaced."""
    return end_if_lost(node, context.observed, context.previous, context.now, has_started=context.has_started)


def drop_removal_problem(node: NodeFacts, context: InferenceContext) -> NodeFacts:
    """Drop the problem PodDeleted of an attempt before the suspension: muster itself deleted that pod."""
    process, previous_attempts = node.process, 0 if context.has_started else context.previous.attempt
    if process.state is not ProcessState.MISSING or not 0 <= process.replacement < previous_attempts:
        return node
    if process.problem is None or process.problem.reason != POD_DELETED:
        return node
    return replace(node, process=replace(process, problem=None))


def raise_replacement(node: NodeFacts, context: InferenceContext) -> NodeFacts:
    """Raise the replacement number of a missing node to the attempt's: each attempt had its own pod of the node."""
    # A restart keeps pods, so their replacement numbers do not follow the attempts.
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


def drop_earlier_attempts(node: NodeFacts, context: InferenceContext) -> NodeFacts:
    """Drop reports and commands of attempts before the job's suspension."""
    # The attempt has not started, so a missing node can't have a report or a command.
    if node.process.state is ProcessState.MISSING and not context.has_started:
        return node if node.agent is None and node.command is None else _without_agent(node)
    agent, command = node.agent, node.command
    if agent is not None and 0 < agent.report.attempt < context.attempt:
        return _without_agent(node)
    if command is not None and command.attempt < context.attempt:
        return replace(node, command=None, command_sent_at=None)
    return node


def use_termination_message(node: NodeFacts, context: InferenceContext) -> NodeFacts:
    """Use the pod's termination log if the agent's last report was lost."""
    message = node.process.termination_message
    # The pod ended between two attempts, so the message describes the earlier one.
    if message is not None and 0 < message.attempt < context.attempt:
        return node
    return with_termination_message(context.job, node)


def add_missing_report_problem(node: NodeFacts, context: InferenceContext) -> NodeFacts:
    """Add the problem of an agent that has never reported, or has stopped reporting."""
    return with_problem(node, context.observed, context.now)


STEPS: tuple[Callable[[NodeFacts, InferenceContext], NodeFacts], ...] = (
    end_lost_node,
    drop_removal_problem,
    raise_replacement,
    reuse_agent,
    drop_earlier_attempts,
    use_termination_message,
    add_missing_report_problem,
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
