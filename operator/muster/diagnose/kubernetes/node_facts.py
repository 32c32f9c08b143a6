"""A node from what its pod and its agent say: each knows something first. Pure."""

from dataclasses import replace

from muster.core.facts import AgentFacts, Problem, ProcessFacts, ProcessState
from muster.core.failure.problems import POD_DELETED
from muster.diagnose.kubernetes.start_problems import OVERCOME

KUBELET_SECONDS = 1.0
"""Kubelets cut off the fraction of a second."""


def as_heard(process: ProcessFacts, agent: AgentFacts | None, ended_by: float | None = None) -> ProcessFacts:
    """The process, with what follows from its agent having been heard.

    `ended_by` is when the operator saw that it had ended (Unix seconds); None when it didn't see that.
    """
    if agent is None or agent.report.replacement != process.replacement:
        return process
    # Who reports, runs; the kubelet's word takes longer.
    if process.state is ProcessState.WAITING:
        problem = process.problem
        is_past = problem is not None and problem.reason in OVERCOME
        return replace(process, state=ProcessState.RUNNING, problem=None if is_past else problem)
    # It did not end before it spoke, whatever its machine's clock says: what its ranks did before comes first.
    if process.state is ProcessState.EXITED and process.ended_at is not None:
        latest = process.ended_at + KUBELET_SECONDS if ended_by is None else ended_by
        return replace(process, ended_at=max(process.ended_at, min(agent.heard_at, latest)))
    return process


def missing_process(process: ProcessFacts, replacement: int, at: float | None = None) -> ProcessFacts:
    """The process of a pod that isn't there any more, as it was last seen; `replacement` is the node's highest.

    `at` is when the operator saw that it is gone (Unix seconds).
    """
    # Whatever ends a pod leaves it there for its owner to look at: who takes it away has deleted it, or released it.
    # The two look the same: the watch does not show a pod without muster's labels.
    problem = process.problem or Problem(
        POD_DELETED, f"pod {process.name}, its labels or its owner reference was removed, and not by muster"
    )
    return ProcessFacts(
        ProcessState.MISSING, replacement, ended_at=at, problem=problem, name=process.name, machine=process.machine
    )


def is_own_doing(problem: Problem, ended_at: float | None, removed_at: float) -> bool:
    """Whether muster itself brought a pod's problem about by deleting the pod: it ended after that (Unix seconds)."""
    if problem.reason == POD_DELETED:
        return True
    return ended_at is not None and ended_at + KUBELET_SECONDS >= removed_at
