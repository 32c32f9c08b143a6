"""Select what to delete: pods when a job ends or is suspended, and finally the job's resource."""

from collections.abc import Iterator

from muster.api.spec.job import Job
from muster.core.actions import Action, DeleteResource, KillNode, RemoveNode, RemoveSurplusPod
from muster.core.disruption import remove_pods_that_will_end
from muster.core.facts import JobFacts, NodeFacts, ProcessState
from muster.core.gang_release import GangRelease
from muster.core.outcome import Outcome, Verdict

REMOVE_GRACE_SECONDS = 10.0
"""The grace period of containers that outlive the agent, such as a sidecar that still sends data."""


def remove_surplus_pods(facts: JobFacts) -> tuple[Action, ...]:
    """Delete surplus pods, and pods on lost Kubernetes nodes.

    No pod may run at the same time as its replacement, and a lost Kubernetes node may return with its pod.
    """
    kills = (
        KillNode(node.node, "its Kubernetes node is lost")
        for node in facts.all_nodes
        if node.process.lost_at is not None and not node.process.is_terminating
    )
    return (*(RemoveSurplusPod(name) for name in facts.surplus_pods), *kills)


def clean_up(job: Job, facts: JobFacts, outcome: Outcome, now: float) -> tuple[Action, ...]:
    """Return the deletions that a finished or ending job needs now."""
    at = outcome.expires_at
    return (DeleteResource(),) if at is not None and now >= at else tuple(_list_removals(job, facts, outcome))


def remove_pods_that_block_start(job: Job, facts: JobFacts, outcome: Outcome) -> tuple[Action, ...] | None:
    """Delete the pods that block the next start; None if the job can create its missing pods now."""
    # The spec can't create all nodes, so create none.
    if facts.refusal is not None:
        return ()
    # Delete pods of an earlier spec: none of them has started its ranks.
    if facts.has_outdated_pods:
        return _remove_outdated_pods(facts)
    # Release the nodes of an incomplete gang, so that other jobs can use them.
    if outcome.release is not None and outcome.release.is_in_progress:
        return _remove_released_pods(facts, outcome.release)
    # Replace the pods that end soon, and those of earlier attempts that the next attempt can't use.
    return (*remove_pods_that_will_end(facts), *_replace_pods(job, facts, outcome)) or None


def _remove_outdated_pods(facts: JobFacts) -> tuple[Action, ...]:
    """Delete pods that muster created from an older spec. It creates them again once all are deleted."""
    return tuple(
        RemoveNode(node.node, REMOVE_GRACE_SECONDS, "it was created from an earlier spec")
        for node in facts.all_nodes
        if node.process.state is not ProcessState.MISSING and not node.process.is_terminating
    )


def _remove_released_pods(facts: JobFacts, release: GangRelease) -> tuple[Action, ...]:
    """Delete the pods of a gang that can't be scheduled completely."""
    return tuple(
        RemoveNode(node.node, REMOVE_GRACE_SECONDS, "not all pods of its gang could be scheduled")
        for node in facts.all_nodes
        if release.includes(node) and not node.process.is_terminating
    )


def _replace_pods(job: Job, facts: JobFacts, outcome: Outcome) -> tuple[Action, ...]:
    """Delete the pods of earlier attempts that the next attempt can't use: no rank runs in them."""
    policy, last = job.spec.failure_policy, outcome.last_restart
    if policy is None or last is None:
        return ()
    return tuple(
        KillNode(node.node, "the next attempt needs a new pod")
        for node in facts.nodes
        if node.process.state in (ProcessState.WAITING, ProcessState.RUNNING)
        and node.process.replacement < last.replacement
        and (policy.restart_scope == "Pods" or _has_problem(node) or node.node == last.straggler_node)
    )


def _has_problem(node: NodeFacts) -> bool:
    """Whether the node's agent reported a problem, with which it would refuse the next start."""
    agent = node.current_agent
    return agent is not None and agent.report.problem is not None


def _list_removals(job: Job, facts: JobFacts, outcome: Outcome) -> Iterator[RemoveNode]:
    for node in facts.all_nodes:
        why = _explain_removal(job, node, outcome)
        if why is not None and not node.process.is_terminating:
            yield RemoveNode(node.node, REMOVE_GRACE_SECONDS, why)


def _explain_removal(job: Job, node: NodeFacts, outcome: Outcome) -> str | None:
    # A running agent exits by itself when it receives the command.
    if node.process.state in (ProcessState.MISSING, ProcessState.RUNNING):
        return None
    if outcome.verdict is Verdict.SUSPENDED:
        return "the job is suspended"
    return _explain_clean_pod_policy(job, node, outcome)


def _explain_clean_pod_policy(job: Job, node: NodeFacts, outcome: Outcome) -> str | None:
    """Why `cleanPodPolicy` deletes this node's pod; None to keep it."""
    pods = job.spec.clean_pod_policy
    # A waiting pod would start without any work.
    if node.process.state is ProcessState.WAITING and pods != "None":
        return "the job has ended"
    # Keep failed pods until the status contains the failure.
    if pods == "None" or outcome.final_since is None:
        return None
    if pods == "All":
        return "cleanPodPolicy is All"
    return "the job has ended" if node.process.has_running_sidecars else None
