"""Decide when a lost node's pod may be replaced, although its ranks may still run.

An agent that reaches neither the collector nor a peer for `fenceSeconds` stops its ranks. So after that time and a
margin nothing of a lost node runs, unless its peers are cut off together with it.
"""

from collections.abc import Sequence
from dataclasses import replace

from muster.api.spec.failure_policy import FENCE_MARGIN_SECONDS
from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.facts import JobFacts, NodeFacts, Problem, ProcessFacts, ProcessState

OLD_POD_MAY_RUN = "OldPodMayRun"


def fence_seconds(job: Job) -> float:
    """Return the time after which the job's agents stop their ranks if they are cut off; 0 if they don't."""
    policy = job.spec.failure_policy
    # A single node has no peer that could tell whether the operator is away.
    return 0.0 if policy is None or job.spec.max_nodes == 1 else float(policy.fence_seconds)


def compute_fence_timeout(node: NodeFacts, facts: JobFacts) -> float:
    """Return how long after a node's last sign of life its ranks may still run."""
    agent = node.current_agent
    # The agent has the value from the time when its pod was created.
    seconds = max(facts.fence_seconds, 0.0 if agent is None else agent.report.fence_seconds)
    return seconds + FENCE_MARGIN_SECONDS if seconds else 0.0


def add_old_pod_problem(job: Job, previous: Status, nodes: tuple[NodeFacts, ...]) -> tuple[NodeFacts, ...]:
    """Add a problem to all nodes if the ranks of the last attempt may still run, so that no pod may replace another.

    The last attempt has failed, or the job was suspended and resumed.

    Nodes that are cut off together keep each other alive, as if the operator were away. If at least one node is not
    lost, the others can't train without it. But if all of them are lost, or the job has only one, time proves nothing:
    wait until the pods have ended, or until they are removed with their Kubernetes nodes.
    """
    awaits_next_attempt = previous.attempt > 0 and not previous.was_started and not job.spec.suspend
    if not awaits_next_attempt or not are_all_cut_off(nodes):
        return nodes
    return tuple(_with_problem(node) for node in nodes)


def are_all_cut_off(nodes: Sequence[NodeFacts]) -> bool:
    """Whether the pods of all these nodes exist on lost machines."""
    return all(_may_run(node.process) for node in nodes)


def has_old_pod(node: NodeFacts) -> bool:
    """Whether the ranks of the node's old pod may still run."""
    problem = node.process.problem
    return problem is not None and problem.reason == OLD_POD_MAY_RUN


def _may_run(process: ProcessFacts) -> bool:
    """Whether the pod exists on a lost machine."""
    is_there = process.unreachable_since is not None or process.deletion_deadline is not None
    return process.state is ProcessState.MISSING and process.lost_at is not None and is_there


def _with_problem(node: NodeFacts) -> NodeFacts:
    process = node.process
    machine = process.machine or "its machine"
    message = (
        f"pod {process.name} on {machine} is cut off and may still run: power off {machine} and delete its Node "
        f"(`kubectl delete node {process.machine or 'NODE'}`), or wait until it returns"
    )
    return replace(node, process=replace(process, problem=Problem(OLD_POD_MAY_RUN, message)))
