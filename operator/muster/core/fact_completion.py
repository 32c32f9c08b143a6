"""Complete the observed facts of each node before a decision, in an ordered list of steps."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.facts import AgentFacts, JobFacts, NodeFacts, ProcessState
from muster.core.failure.problems import POD_DELETED, add_silence_problem, mark_if_lost
from muster.core.failure.termination_log import add_termination_message
from muster.core.fence import add_old_pod_problem
from muster.core.membership.members import choose_next_members, has_fixed_members, read_members, split_members
from muster.core.world import get_procs_per_node
from muster_worker.contract.schema import AgentPhase


@dataclass(frozen=True)
class CompletionContext:
    """The input of a completion step besides the node. `observed_facts` are the facts before the first step.

    `has_started` is set if `previous` records a start. `attempt` is the number of that start, or of the next one.
    """

    job: Job
    previous: Status
    observed_facts: JobFacts
    now: float
    has_started: bool
    attempt: int


def end_lost_node(node: NodeFacts, context: CompletionContext) -> NodeFacts:
    """If the Kubernetes node is lost, mark the node as ended, or as missing so that muster can replace it."""
    return mark_if_lost(node, context.observed_facts, context.previous, context.now, has_started=context.has_started)


def drop_removal_problem(node: NodeFacts, context: CompletionContext) -> NodeFacts:
    """Drop the problem PodDeleted of an attempt before the suspension, because muster itself deleted that pod."""
    process, previous_attempts = node.process, 0 if context.has_started else context.previous.attempt
    if process.state is not ProcessState.MISSING or not 0 <= process.replacement < previous_attempts:
        return node
    if process.problem is None or process.problem.reason != POD_DELETED:
        return node
    return replace(node, process=replace(process, problem=None))


def raise_replacement_number(node: NodeFacts, context: CompletionContext) -> NodeFacts:
    """Raise the replacement number of a missing node to the number of attempts - 1: each attempt had its own pod."""
    # A restart keeps pods, so their replacement numbers do not follow the attempts.
    if context.previous.last_restart is not None:
        return node
    process, attempts = node.process, context.previous.attempt
    if process.state is not ProcessState.MISSING or process.replacement >= attempts - 1:
        return node
    return replace(node, process=replace(process, replacement=attempts - 1))


def reuse_agent(node: NodeFacts, context: CompletionContext) -> NodeFacts:
    """Mark an agent as ready again after a restart, once its ranks have ended.

    A pod that has ended, or that is being deleted and whose ranks have ended, counts as missing.
    """
    previous, attempt = context.previous, context.attempt
    if previous.restarts is None or previous.last_restart is None:
        return node
    process, agent = node.process, node.current_agent
    is_earlier = previous.is_restarting and process.replacement < previous.restarts.replacement
    has_ended = process.state is ProcessState.EXITED or (process.is_terminating and _has_ended_attempts(agent))
    if has_ended and is_earlier:
        return _drop_agent(replace(node, process=replace(process, state=ProcessState.MISSING, problem=None)))
    if process.state is not ProcessState.RUNNING or agent is None or agent.report.attempt >= attempt:
        return node
    # Something other than muster stops this agent, so its pod will end and be replaced.
    if agent.terminated_at is not None or process.is_terminating:
        return _drop_earlier_attempts(node, attempt)
    # The agent still stops the ranks of the earlier attempt.
    if agent.report.phase != AgentPhase.ENDED:
        return node
    report = replace(
        agent.report, attempt=0, phase=AgentPhase.READY, ranks=(), metrics=(), launcher=None, stop_call=None
    )
    ready_agent = AgentFacts(report, agent.last_report_at, heartbeat_seconds=agent.heartbeat_seconds)
    return replace(_drop_earlier_attempts(node, attempt), agent=ready_agent)


def _has_ended_attempts(agent: AgentFacts | None) -> bool:
    """Whether the agent has started ranks, and none of them runs."""
    return agent is not None and agent.report.attempt > 0 and agent.report.phase == AgentPhase.ENDED


def drop_earlier_attempts(node: NodeFacts, context: CompletionContext) -> NodeFacts:
    """Drop reports and commands of attempts before the job's suspension."""
    # The attempt has not started, so a missing node can't have a report or a command.
    if node.process.state is ProcessState.MISSING and not context.has_started:
        return node if node.agent is None and node.command is None else _drop_agent(node)
    agent = node.agent
    if agent is not None and 0 < agent.report.attempt < context.attempt:
        return _drop_earlier_attempts(node, context.attempt)
    return _drop_earlier_command(node, context.attempt)


def use_termination_message(node: NodeFacts, context: CompletionContext) -> NodeFacts:
    """Use the pod's termination log if the agent's last report was lost."""
    message = node.process.termination_message
    # The pod ended between two attempts, so the message describes the earlier one.
    if message is not None and 0 < message.attempt < context.attempt:
        return node
    return add_termination_message(context.job, node)


def add_missing_report_problem(node: NodeFacts, context: CompletionContext) -> NodeFacts:
    """Add the problem of an agent that has never reported, or has stopped reporting."""
    return add_silence_problem(node, context.observed_facts, context.now)


COMPLETION_STEPS: tuple[Callable[[NodeFacts, CompletionContext], NodeFacts], ...] = (
    end_lost_node,
    drop_removal_problem,
    raise_replacement_number,
    reuse_agent,
    drop_earlier_attempts,
    use_termination_message,
    add_missing_report_problem,
)
"""Each step receives the result of the previous one."""


def complete_facts(job: Job, previous: Status, facts: JobFacts, now: float) -> JobFacts:
    """Return the complete facts at `now` (Unix seconds), which `judge`, `decide` and `summarise` need."""
    context = CompletionContext(job, previous, facts, now, previous.was_started, previous.current_attempt)
    if not has_fixed_members(job):
        facts = _complete_changing_members(context, read_members(job, previous))
    else:
        facts = replace(facts, nodes=tuple(_apply_steps(node, context) for node in facts.nodes))
    return replace(facts, nodes=add_old_pod_problem(job, previous, facts.nodes))


def _complete_changing_members(context: CompletionContext, recorded_members: tuple[int, ...] | None) -> JobFacts:
    """Return the facts of a job whose attempts may have different members; `recorded` are the running members."""
    ranks = {} if recorded_members is None else {node: rank for rank, node in enumerate(recorded_members)}
    # A node that is not a member waits for the next attempt.
    waiting = context if recorded_members is None else replace(context, has_started=False, attempt=context.attempt + 1)
    nodes = tuple(
        _apply_steps(replace(node, attempt_rank=ranks[node.node]), context)
        if node.node in ranks
        else _keep_end_command(_apply_steps(node, waiting), node, context)
        for node in context.observed_facts.nodes
    )
    facts = replace(context.observed_facts, nodes=nodes)
    members = (
        choose_next_members(context.job, context.previous, facts, context.now)
        if recorded_members is None
        else recorded_members
    )
    facts = split_members(facts, members, context.job.spec.nodes)
    return replace(
        facts,
        conflicting_nodes=tuple(_find_conflicting_nodes(context, facts)),
        spares=context.job.spec.spares,
        nodes=tuple(_keep_ranks(node, _list_ranks(context.job, node)) for node in facts.nodes),
        non_members=tuple(_keep_ranks(node, range(0)) for node in facts.non_members),
    )


def _keep_end_command(node: NodeFacts, observed_node: NodeFacts, context: CompletionContext) -> NodeFacts:
    """Keep the command with which muster has told a waiting node to end. Otherwise muster would send it again."""
    command = observed_node.command
    is_running = node.process.state is ProcessState.RUNNING
    if node.command is not None or command is None or not (is_running and observed_node.has_end_command):
        return node
    if command.attempt < context.attempt:
        return node
    return replace(node, command=command, command_sent_at=observed_node.command_sent_at)


def _find_conflicting_nodes(context: CompletionContext, facts: JobFacts) -> Iterator[int]:
    """Yield nodes that run ranks of another node, which happens if a user edits the status of a running job."""
    members = {node.node for node in facts.nodes}
    for node in facts.all_nodes:
        agent = context.observed_facts.nodes[node.node].current_agent
        if node.process.state is not ProcessState.RUNNING or agent is None:
            continue
        if agent.report.attempt == 0 or agent.report.phase == AgentPhase.ENDED:
            continue
        if node.node not in members or _runs_other_ranks(context.job, node, agent):
            yield node.node


def _runs_other_ranks(job: Job, member: NodeFacts, agent: AgentFacts) -> bool:
    """Whether a member runs ranks of another node, because the status has other members or another order."""
    return any(rank.report.rank not in _list_ranks(job, member) for rank in agent.ranks)


def _list_ranks(job: Job, member: NodeFacts) -> range:
    procs = get_procs_per_node(job)
    return range(member.node_rank * procs, (member.node_rank + 1) * procs)


def _keep_ranks(node: NodeFacts, own_ranks: range) -> NodeFacts:
    """Drop other ranks and their metrics: the collector doesn't know the members, so it accepts such ranks."""
    agent = node.agent
    if agent is None:
        return node
    ranks = tuple(rank for rank in agent.ranks if rank.report.rank in own_ranks)
    metrics = tuple(metric for metric in agent.metrics if metric.value.rank in own_ranks)
    if (len(ranks), len(metrics)) == (len(agent.ranks), len(agent.metrics)):
        return node
    return replace(node, agent=replace(agent, ranks=ranks, metrics=metrics))


def _apply_steps(node: NodeFacts, context: CompletionContext) -> NodeFacts:
    for step in COMPLETION_STEPS:
        node = step(node, context)
    return node


def _drop_earlier_attempts(node: NodeFacts, attempt: int) -> NodeFacts:
    """Return the node without its agent, which belongs to an earlier attempt, and without an earlier command.

    Keep a later command, such as Exit. Otherwise the operator would send it again at each reconciliation.
    """
    return replace(_drop_earlier_command(node, attempt), agent=None)


def _drop_earlier_command(node: NodeFacts, attempt: int) -> NodeFacts:
    if node.command is None or node.command.attempt >= attempt:
        return node
    return replace(node, command=None, command_sent_at=None)


def _drop_agent(node: NodeFacts) -> NodeFacts:
    return replace(node, agent=None, command=None, command_sent_at=None)
