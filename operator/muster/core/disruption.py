"""Handle pods that the cluster will end: a Kubernetes node is drained, or a spot instance is interrupted."""

from muster.core.actions import KillNode
from muster.core.facts import JobFacts, NodeFacts, ProcessState


def will_end(node: NodeFacts) -> bool:
    """Whether the pod's deletion was requested, or the cluster has announced the pod's end."""
    return node.process.is_terminating or node.process.disruption_announced_at is not None


def remove_pods_that_will_end(facts: JobFacts) -> tuple[KillNode, ...]:
    """Delete the pods whose end the cluster has announced: ranks in them would stop soon after their start."""
    return tuple(
        KillNode(node.node, "the cluster has announced its end")
        for node in facts.nodes
        if node.process.disruption_announced_at is not None
        and node.process.state in (ProcessState.WAITING, ProcessState.RUNNING)
        and not node.process.is_terminating
    )
