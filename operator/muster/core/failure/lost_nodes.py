"""End nodes whose machine is down or unreachable for too long. Pure.

muster can't tell a failed machine from a network partition. It requires two independent signs: the agent stops
reporting, and the cluster marks the machine as unreachable or can't delete the pod. An agent that reports is never
lost. A silent agent alone is not lost either, because muster itself may be unreachable.
"""

from dataclasses import replace

from muster.api.status.status import Status
from muster.api.timestamps import format_seconds
from muster.core.facts import SILENT_PACES, JobFacts, NodeFacts, Problem, ProcessFacts, ProcessState
from muster.core.failure.ends import NODE_LOST

LOST_SECONDS = 60.0
"""How long to wait for a silent node after the cluster has marked its machine as unreachable. A restarted switch is
back by then, and ranks may continue. Kubernetes takes 40 to 50 s to mark a machine, so a partition ends a
job after two minutes, and one below 100 s never does."""


def lost_at(node: NodeFacts, facts: JobFacts) -> float | None:
    """When the node counts as lost if no report arrives; None without a sign of a lost machine."""
    process = node.process
    if process.lost_at is not None:
        return process.lost_at
    if process.state is ProcessState.MISSING:
        return None
    suspected_at = [at for at in (process.unreachable_since, process.deletion_deadline) if at is not None]
    if not suspected_at:
        return None
    # The process has ended and only its pod's deletion hangs.
    if process.state is ProcessState.EXITED:
        return None if process.deletion_deadline is None else process.deletion_deadline + LOST_SECONDS
    timeout = max(LOST_SECONDS, SILENT_PACES * facts.heartbeat_seconds)
    return max(min(suspected_at) + LOST_SECONDS, _last_report_at(node, facts) + timeout)


def end_if_lost(node: NodeFacts, facts: JobFacts, previous: Status, now: float, *, started: bool) -> NodeFacts:
    """The node, marked as ended if its machine is lost at `now` (Unix seconds).

    `started` is set once the gang received its start command. Before that, and during a suspension, the node becomes
    MISSING, so that it can be replaced.
    """
    at = lost_at(node, facts)
    if at is None or now < at:
        return node
    is_terminating = node.process.is_terminating or node.process.state is ProcessState.MISSING
    process = replace(node.process, lost_at=at, is_terminating=is_terminating)
    # A failing job replaces no node.
    if previous.is_suspending or not (started or previous.is_failing):
        return replace(node, process=replace(process, state=ProcessState.MISSING, problem=None))
    if process.state is ProcessState.EXITED:
        return replace(node, process=process)
    lost = replace(process, state=ProcessState.EXITED, ended_at=at)
    # All ranks ended and reported before the loss.
    if node.has_ended:
        return replace(node, process=lost)
    problem = Problem(NODE_LOST, _describe_loss(process, at))
    return replace(node, process=replace(lost, problem=problem))


def _last_report_at(node: NodeFacts, facts: JobFacts) -> float:
    agent = node.current_agent
    # After its start, the operator gives every agent time to report.
    return facts.collector_started_at if agent is None else max(agent.last_report_at, facts.collector_started_at)


def _describe_loss(process: ProcessFacts, at: float) -> str:
    machine = process.machine or "its machine"
    silence = f"neither the cluster nor muster has heard of pod {process.name} for {LOST_SECONDS:.0f} s and more"
    return f"{machine} is lost: {silence} (at {format_seconds(at)})"
