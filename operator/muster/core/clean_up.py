"""What is deleted of a job: pods while it ends, once it is over and when it is suspended; at last its resource."""

from collections.abc import Iterator

from muster.api.spec.job import Job
from muster.core.actions import Action, DeleteResource, KillNode, RemoveNode, RemoveStray
from muster.core.facts import JobFacts, NodeFacts, ProcessState
from muster.core.gang_release import GangRelease
from muster.core.judge import Outcome, Verdict

REMOVE_GRACE_SECONDS = 10.0
"""From SIGTERM to SIGKILL for what still runs beside an agent that is gone: a sidecar may have something to send."""


def remove_strays(facts: JobFacts) -> tuple[Action, ...]:
    """Delete what is none of the job's nodes (any more): nothing may run there beside its successor."""
    return tuple(RemoveStray(name) for name in facts.strays)


def kill_lost(facts: JobFacts) -> tuple[Action, ...]:
    """Delete the pods of lost machines: on a machine that comes back, no rank goes on beside what replaced it."""
    return tuple(
        KillNode(node.node, "its machine is lost")
        for node in facts.nodes
        if node.process.lost_at is not None and not node.process.is_leaving
    )


def remove_outdated(facts: JobFacts) -> tuple[Action, ...]:
    """Delete the pods of a job whose spec has changed before its gang started; they are made anew once all are gone."""
    return tuple(
        RemoveNode(node.node, REMOVE_GRACE_SECONDS, "it was made from an earlier spec")
        for node in facts.nodes
        if node.process.state is not ProcessState.MISSING and not node.process.is_leaving
    )


def remove_released(facts: JobFacts, release: GangRelease) -> tuple[Action, ...]:
    """Delete the pods of a gang that is given up because it can't be placed whole."""
    return tuple(
        RemoveNode(node.node, REMOVE_GRACE_SECONDS, "its gang could not be placed whole")
        for node in facts.nodes
        if release.gives_up(node) and not node.process.is_leaving
    )


def clean_up(job: Job, facts: JobFacts, outcome: Outcome, now: float) -> tuple[Action, ...]:
    """What is deleted now of a job that is over or has to end."""
    at = expires_at(job, outcome)
    return (DeleteResource(),) if at is not None and now >= at else tuple(_removals(job, facts, outcome))


def expires_at(job: Job, outcome: Outcome) -> float | None:
    """When the job's resource is deleted (Unix seconds); None while that isn't known, or never."""
    seconds = job.spec.ttl_seconds_after_finished
    return None if seconds is None or outcome.told_at is None else outcome.told_at + seconds


def _removals(job: Job, facts: JobFacts, outcome: Outcome) -> Iterator[RemoveNode]:
    for node in facts.nodes:
        why = _why_removed(job, node, outcome)
        if why is not None and not node.process.is_leaving:
            yield RemoveNode(node.node, REMOVE_GRACE_SECONDS, why)


def _why_removed(job: Job, node: NodeFacts, outcome: Outcome) -> str | None:
    # An agent that runs leaves first: it was told to, or will be.
    if node.process.state in (ProcessState.MISSING, ProcessState.RUNNING):
        return None
    if outcome.verdict is Verdict.SUSPENDED:
        return "the job is suspended"
    return _why_not_kept(job, node, outcome)


def _why_not_kept(job: Job, node: NodeFacts, outcome: Outcome) -> str | None:
    """Why `cleanPodPolicy` has this node deleted; None when it has it kept."""
    pods = job.spec.clean_pod_policy
    # It would only begin to run for nothing.
    if node.process.state is ProcessState.WAITING and pods != "None":
        return "the job has ended"
    # What failed is looked at until the status tells why.
    if pods == "None" or outcome.told_at is None:
        return None
    if pods == "All":
        return "cleanPodPolicy is All"
    return "the job has ended" if node.process.lingers else None
