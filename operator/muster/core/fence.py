"""Decide when muster may replace the pod of a lost node, which doesn't report whether its ranks still run.

An agent that reaches neither the collector nor a peer for `fenceSeconds` stops its ranks. So no rank of a lost node
runs after that time and a margin. The exception is a lost node that still reaches other lost nodes.
"""

from collections.abc import Sequence
from dataclasses import replace

from muster.api.spec.failure_policy import FENCE_MARGIN_SECONDS
from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.facts import (
    JobFacts,
    NodeFacts,
    ProcessFacts,
    ProcessState,
)
from muster.core.problem import Problem

OLD_POD_MAY_RUN = "OldPodMayRun"


def compute_fence_timeout(node: NodeFacts, facts: JobFacts) -> float:
    """Return how long after a node's last report its ranks may still run."""
    agent = node.current_agent
    # The agent uses the `fenceSeconds` of the time when its pod was created.
    seconds = max(facts.fence_seconds, 0.0 if agent is None else agent.report.fence_seconds)
    return seconds + FENCE_MARGIN_SECONDS if seconds else 0.0


def add_old_pod_problem(job: Job, previous: Status, nodes: tuple[NodeFacts, ...]) -> tuple[NodeFacts, ...]:
    """Add a problem to all nodes if the ranks of the last attempt may still run, so that muster replaces no pod.

    This applies after a failed attempt, and after a job was suspended and resumed. Lost nodes that reach each other
    don't stop their ranks, because perhaps only the operator is down. If one node is not lost, the other ranks can't
    train without it. But if all nodes are lost, or the job has only one node, muster waits until the pods have ended or
    are deleted with their Kubernetes nodes.
    """
    awaits_next_attempt = previous.attempt > 0 and not previous.was_started and not job.spec.suspend
    if not awaits_next_attempt or not are_all_cut_off(nodes):
        return nodes
    return tuple(_set_problem(node) for node in nodes)


def are_all_cut_off(nodes: Sequence[NodeFacts]) -> bool:
    """Whether the pods of all these nodes exist on lost Kubernetes nodes."""
    return all(_is_cut_off(node.process) for node in nodes)


def may_old_pod_run(node: NodeFacts) -> bool:
    """Whether the ranks of the node's old pod may still run."""
    problem = node.process.problem
    return problem is not None and problem.reason == OLD_POD_MAY_RUN


def _is_cut_off(process: ProcessFacts) -> bool:
    """Whether the pod exists on a lost Kubernetes node."""
    pod_exists = process.unreachable_since is not None or process.deletion_deadline is not None
    return process.state is ProcessState.MISSING and process.lost_at is not None and pod_exists


def _set_problem(node: NodeFacts) -> NodeFacts:
    process = node.process
    kube_node = process.kube_node or "its Kubernetes node"
    message = (
        f"pod {process.name} on {kube_node} is cut off and may still run: power off {kube_node} and delete its Node "
        f"(`kubectl delete node {process.kube_node or 'NODE'}`), or wait until it returns"
    )
    return replace(node, process=replace(process, problem=Problem(OLD_POD_MAY_RUN, message)))
