"""What a node's facts mean for the gang: is it ready, started, silent, settled."""

from muster.plan.facts import AgentFacts, JobFacts, NodeFacts, ProcessState
from muster_worker.contract.schema import AgentPhase, CommandKind

SILENT_PACES = 3
"""A node is silent after that many heartbeats without a report: two may be lost by accident."""


def current_agent(node: NodeFacts) -> AgentFacts | None:
    """The agent of the node's present process; what an earlier replacement said is the past."""
    agent = node.agent
    return agent if agent is not None and agent.report.replacement >= node.process.replacement else None


def is_ready(node: NodeFacts) -> bool:
    """Whether the node's agent waits for Start and said where it can be reached."""
    agent = current_agent(node)
    if agent is None or node.process.state is not ProcessState.RUNNING:
        return False
    report = agent.report
    reachable = report.address is not None and report.port is not None
    return report.phase == AgentPhase.READY and report.problem is None and reachable


def has_started(node: NodeFacts) -> bool:
    """Whether the node was told to start its ranks, or did."""
    agent = current_agent(node)
    if agent is not None and agent.report.attempt > 0:
        return True
    return node.command is not None and node.command.kind == CommandKind.START


def has_ended(node: NodeFacts) -> bool:
    """Whether the agent said that no process of the attempt is left."""
    agent = current_agent(node)
    return agent is not None and agent.report.phase == AgentPhase.ENDED


def is_gone(node: NodeFacts) -> bool:
    """Whether the node's agent does not exist (yet, or any more), and will not come into being by itself."""
    return node.process.state in (ProcessState.MISSING, ProcessState.EXITED)


def is_placed(node: NodeFacts) -> bool:
    """Whether the node's process has its place on a machine."""
    process = node.process
    if process.state is ProcessState.WAITING:
        return process.scheduled_at is not None
    return process.state is not ProcessState.MISSING


def is_mute(node: NodeFacts) -> bool:
    """Whether the node's process runs and its agent has said nothing yet, that anybody heard."""
    return node.process.state is ProcessState.RUNNING and current_agent(node) is None


def is_settled(node: NodeFacts) -> bool:
    """Whether no rank of the job runs on the node, and none will without an action."""
    return node.process.state is not ProcessState.RUNNING or has_ended(node)


def is_told_to_end(node: NodeFacts) -> bool:
    """Whether the node's agent was told to stop, to kill its ranks or to leave."""
    return node.command is not None and node.command.kind != CommandKind.START


def silent_at(node: NodeFacts, facts: JobFacts) -> float | None:
    """When the node counts as silent if no report comes; None when no more reports are due."""
    agent = current_agent(node)
    if agent is None or is_settled(node):
        return None
    return agent.heard_at + SILENT_PACES * facts.heartbeat_seconds


def is_silent(node: NodeFacts, facts: JobFacts, now: float) -> bool:
    """Whether the node's ranks are unknown: its process is there, but its agent says nothing."""
    at = silent_at(node, facts)
    return at is not None and now >= at
