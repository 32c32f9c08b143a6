"""A node whose machine is down, or cut off for so long that the job goes on without it. Pure.

muster can't tell the one from the other. Two independent sources have to agree: the node's agent is silent,
and the cluster says that the machine doesn't answer, or has waited in vain for it to delete the pod. An agent that is
heard is never lost, and a silent one alone is not either: it may be muster that can't be reached.
"""

from dataclasses import replace

from muster.api.status.status import Status
from muster.api.timestamps import to_seconds
from muster.core.facts import SILENT_PACES, JobFacts, NodeFacts, Problem, ProcessFacts, ProcessState
from muster.core.failure.ends import NODE_LOST

LOST_SECONDS = 60.0
"""How long a silent node is waited for after the cluster has given its machine up: a switch that is restarted is back
by then, and the ranks on it may go on. Kubernetes takes 40 to 50 s to give a machine up, so a cut ends a job after two
minutes, and not one that heals within 100 s."""


def lost_at(node: NodeFacts, facts: JobFacts) -> float | None:
    """When the node counts as lost if nothing is heard of it; None while its machine is not in doubt."""
    process = node.process
    if process.lost_at is not None:
        return process.lost_at
    if process.state is ProcessState.MISSING or (node.has_ended and process.gone_by is None):
        return None
    doubts = [at for at in (process.cut_off_at, process.gone_by) if at is not None]
    if not doubts:
        return None
    # It has ended, and was not lost before that; only its pod's deletion hangs.
    if process.state is ProcessState.EXITED:
        return None if process.gone_by is None else process.gone_by + LOST_SECONDS
    timeout = max(LOST_SECONDS, SILENT_PACES * facts.heartbeat_seconds)
    return max(min(doubts) + LOST_SECONDS, _last_sign_of_life(node, facts) + timeout)


def without_lost(node: NodeFacts, facts: JobFacts, previous: Status, now: float, *, started: bool) -> NodeFacts:
    """The node, ended by the loss of its machine if that is lost at `now` (Unix seconds).

    `started` says that muster sent the gang its start. Before that, and during a
    suspension, its place is free.
    """
    at = lost_at(node, facts)
    if at is None or now < at:
        return node
    is_leaving = node.process.is_leaving or node.process.state is ProcessState.MISSING
    process = replace(node.process, lost_at=at, is_leaving=is_leaving)
    # A job that is failing has to end: it replaces no node.
    if previous.is_suspending or not (started or previous.is_failing):
        return replace(node, process=replace(process, state=ProcessState.MISSING, problem=None))
    if process.state is ProcessState.EXITED:
        return replace(node, process=process)
    lost = replace(process, state=ProcessState.EXITED, ended_at=at)
    # Its ranks had ended, and reported how.
    if node.has_ended:
        return replace(node, process=lost)
    problem = Problem(NODE_LOST, _sentence(process, at))
    return replace(node, process=replace(lost, problem=problem))


def _last_sign_of_life(node: NodeFacts, facts: JobFacts) -> float:
    agent = node.current_agent
    # An operator that has just begun to listen gives every agent the time to report.
    return facts.listening_since if agent is None else max(agent.heard_at, facts.listening_since)


def _sentence(process: ProcessFacts, at: float) -> str:
    machine = process.machine or "its machine"
    silence = f"neither the cluster nor muster has heard of pod {process.name} for {LOST_SECONDS:.0f} s and more"
    return f"{machine} is lost: {silence} (at {to_seconds(at)})"
