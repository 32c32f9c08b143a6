"""Combine a node's pod with its agent's reports: either may have newer information. Pure."""

from dataclasses import replace

from muster.core.facts import AgentFacts, Problem, ProcessFacts, ProcessState
from muster.core.failure.problems import POD_DELETED
from muster.diagnose.kubernetes.start_problems import OVERCOME

KUBELET_SECONDS = 1.0
"""Kubelets report times in whole seconds."""


def with_agent_report(process: ProcessFacts, agent: AgentFacts | None, ended_by: float | None = None) -> ProcessFacts:
    """Update the process with what follows from its agent's latest report.

    `ended_by` is when the operator observed that it had ended (Unix seconds); None if it did not.
    """
    if agent is None or agent.report.replacement != process.replacement:
        return process
    # An agent that reports is running, even if the kubelet's status is older.
    if process.state is ProcessState.WAITING:
        problem = process.problem
        is_past = problem is not None and problem.reason in OVERCOME
        return replace(process, state=ProcessState.RUNNING, problem=None if is_past else problem)
    # It can't have ended before its last report, whatever its machine's clock shows.
    if process.state is ProcessState.EXITED and process.ended_at is not None:
        latest = process.ended_at + KUBELET_SECONDS if ended_by is None else ended_by
        return replace(process, ended_at=max(process.ended_at, min(agent.last_report_at, latest)))
    return process


def missing_process(process: ProcessFacts, replacement: int, at: float | None = None) -> ProcessFacts:
    """The process of a deleted pod, from its last observation; `replacement` is the node's highest.

    `at` is when the operator observed the deletion (Unix seconds).
    """
    # An ended pod stays until its owner deletes it, so this one was deleted or lost muster's labels. The watch shows
    # both in the same way.
    problem = process.problem or Problem(
        POD_DELETED, f"pod {process.name}, its labels or its owner reference was removed, and not by muster"
    )
    return ProcessFacts(
        ProcessState.MISSING, replacement, ended_at=at, problem=problem, name=process.name, machine=process.machine
    )


def is_caused_by_muster(problem: Problem, ended_at: float | None, removed_at: float) -> bool:
    """Whether muster caused the problem by deleting the pod: the pod ended after `removed_at` (Unix seconds)."""
    if problem.reason == POD_DELETED:
        return True
    return ended_at is not None and ended_at + KUBELET_SECONDS >= removed_at
