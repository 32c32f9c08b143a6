"""Combine a node's pod with its agent's reports, because one may be newer than the other. Pure."""

from dataclasses import replace

from muster.core.facts import AgentFacts, ProcessFacts, ProcessState
from muster.core.failure.problems import POD_DELETED
from muster.core.problem import Problem
from muster.diagnose.kubernetes.start_problems import PROBLEMS_BEFORE_START

KUBELET_SECONDS = 1.0
"""The precision of the times that kubelets report."""


def apply_agent_report(
    process: ProcessFacts, agent: AgentFacts | None, observed_end: float | None = None
) -> ProcessFacts:
    """Update the process with its agent's latest report.

    `observed_end` is the time at which the operator observed the end of the process (Unix seconds), if it did.
    """
    if agent is None or agent.report.replacement != process.replacement:
        return process
    # An agent that reports is running, so the kubelet's status is older.
    if process.state is ProcessState.WAITING:
        problem = process.problem
        is_past = problem is not None and problem.reason in PROBLEMS_BEFORE_START
        return replace(process, state=ProcessState.RUNNING, problem=None if is_past else problem)
    # The process ended after its agent's last report. The clock of its Kubernetes node may be wrong.
    if process.state is ProcessState.EXITED and process.ended_at is not None:
        latest = process.ended_at + KUBELET_SECONDS if observed_end is None else observed_end
        return replace(process, ended_at=max(process.ended_at, min(agent.last_report_at, latest)))
    return process


def build_missing_process(process: ProcessFacts, replacement: int, at: float | None = None) -> ProcessFacts:
    """Return the process of a deleted pod, from its last observation; `replacement` is the node's highest number.

    `at` is the time at which the operator observed the deletion (Unix seconds).
    """
    # A pod that ended by itself would still exist. So the pod was deleted, or its labels were removed. A watch reports
    # both as DELETED.
    problem = process.problem or Problem(
        POD_DELETED, f"pod {process.name}, its labels or its owner reference was removed, and not by muster"
    )
    return ProcessFacts(
        ProcessState.MISSING, replacement, ended_at=at, problem=problem, name=process.name, kube_node=process.kube_node
    )


def is_caused_by_muster(problem: Problem, ended_at: float | None, removed_at: float) -> bool:
    """Whether the problem exists because muster deleted the pod at `removed_at` (Unix seconds)."""
    if problem.reason == POD_DELETED:
        return True
    return ended_at is not None and ended_at + KUBELET_SECONDS >= removed_at
