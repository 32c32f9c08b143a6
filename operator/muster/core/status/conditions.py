"""The status' conditions, following Kubernetes' API conventions."""

from dataclasses import dataclass

from muster.api.plurals import capitalize, describe_share
from muster.api.status.status import RESUMED, STOPPING, SUSPENDED, SUSPENDING, Condition, Status
from muster.api.timestamps import format_seconds
from muster.core.facts import Problem
from muster.core.failure.problems import NODE_SILENT
from muster.core.gang_release import GANG_RELEASED
from muster.core.judge import Outcome, Verdict
from muster.core.status.fit import fit
from muster.core.status.no_problem import why_not_stalled
from muster.core.status.problems import TRANSIENT_REASONS, SharedProblem, shared_problems
from muster.core.status.released import released
from muster.core.status.views import RUNNING, StatusInput

ACCEPTED = "Accepted"
"""The condition that says whether the operator runs the current spec."""

NODES_NOT_PLACED = "NodesNotPlaced"
"""Nodes wait to be scheduled, which is normal for a while: no problem is known."""

REMARKS = "ValidWithRemarks"
"""The reason for a spec with fields that have no effect."""


_RESULTS = {Verdict.SUCCEEDED: "succeeded", Verdict.FAILED: "failed", Verdict.STOPPED: "was stopped"}


@dataclass(frozen=True)
class _ConditionState:
    kind: str
    holds: bool
    reason: str
    message: str


def conditions(status_input: StatusInput, phase: str, message: str) -> tuple[Condition, ...]:
    """Build the conditions Accepted, Scheduled, Running, Stalled, Suspended, Complete, Failed.

    A transition time changes only with the condition's status. Complete and Failed become True only when none of the
    job's processes run, so that a job that waits for its devices finds them free.
    """
    outcome = status_input.outcome
    states = (
        _accepted(status_input),
        _scheduled(status_input),
        _running(status_input, phase, message),
        _stalled(status_input, message),
        _suspended(status_input),
        _final("Complete", (Verdict.SUCCEEDED,), outcome, message),
        _final("Failed", (Verdict.FAILED, Verdict.STOPPED), outcome, message),
    )
    return tuple(_condition(status_input, state) for state in states)


def since(previous: Status, kind: str, status: str) -> str | None:
    """When the condition got this status; None if it is absent or has another status."""
    before = next((entry for entry in previous.conditions if entry.type == kind), None)
    return before.last_transition_time if before is not None and before.status == status else None


def refusal_before_start(status_input: StatusInput) -> Problem | None:
    """The problem that prevents muster from creating nodes; None once the job has started."""
    outcome = status_input.outcome
    return None if outcome.started or outcome.is_decided else status_input.facts.refusal


def _accepted(status_input: StatusInput) -> _ConditionState:
    refusal = refusal_before_start(status_input)
    if refusal is not None:
        return _ConditionState(ACCEPTED, False, refusal.reason, fit(refusal.message))
    warnings = status_input.facts.warnings
    if warnings:
        return _ConditionState(ACCEPTED, True, REMARKS, fit(f"The resource is valid; {'; '.join(warnings)}"))
    return _ConditionState(ACCEPTED, True, "Valid", "The resource is valid")


def _scheduled(status_input: StatusInput) -> _ConditionState:
    outcome, nodes = status_input.outcome, status_input.facts.nodes
    if outcome.verdict is Verdict.SUSPENDED and outcome.settled:
        return _ConditionState("Scheduled", False, SUSPENDED, "No node of the job is scheduled")
    release_message = released(status_input)
    if release_message is not None:
        return _ConditionState("Scheduled", False, GANG_RELEASED, fit(release_message))
    unscheduled = tuple(node for node in nodes if not node.is_placed)
    # Nodes that were lost later had been scheduled.
    if outcome.started or not unscheduled:
        text = "The node is scheduled" if len(nodes) == 1 else "All nodes are scheduled"
        return _ConditionState("Scheduled", True, "AllNodesPlaced", text)
    problem = status_input.facts.problem
    if problem is not None:
        return _ConditionState("Scheduled", False, problem.reason, fit(problem.message))
    shared = shared_problems(unscheduled, len(nodes))
    if shared:
        return _ConditionState("Scheduled", False, shared[0].problem.reason, _join_sentences(shared))
    text = capitalize(
        describe_share(len(unscheduled), len(nodes), "node", "is not scheduled yet", "are not scheduled yet")
    )
    return _ConditionState("Scheduled", False, NODES_NOT_PLACED, text)


def _running(status_input: StatusInput, phase: str, message: str) -> _ConditionState:
    if phase == "Running":
        return _ConditionState("Running", True, phase, message)
    running = sum(view.state == RUNNING for view in status_input.views)
    text = (
        capitalize(describe_share(running, len(status_input.views), "rank", "runs", "run"))
        if running
        else "No rank runs"
    )
    return _ConditionState("Running", False, phase, f"{text}: the job's phase is {phase}")


def _stalled(status_input: StatusInput, message: str) -> _ConditionState:
    outcome, refusal = status_input.outcome, refusal_before_start(status_input)
    if refusal is not None:
        return _ConditionState("Stalled", True, refusal.reason, fit(refusal.message))
    if outcome.verdict in (Verdict.FAILED, Verdict.STOPPED) and outcome.settled:
        return _ConditionState("Stalled", True, outcome.reason, message)
    problem = status_input.facts.problem
    if problem is not None and problem.reason not in TRANSIENT_REASONS:
        return _ConditionState("Stalled", True, problem.reason, fit(problem.message))
    shared = shared_problems(status_input.facts.nodes, len(status_input.facts.nodes))
    # A job that has ended waits only for silent agents.
    needing_user = tuple(entry for entry in shared if not entry.is_transient and _is_relevant(outcome, entry))
    if needing_user:
        return _ConditionState("Stalled", True, needing_user[0].problem.reason, _join_sentences(needing_user))
    return _ConditionState("Stalled", False, *why_not_stalled(status_input))


def _is_relevant(outcome: Outcome, shared: SharedProblem) -> bool:
    return not outcome.is_decided or (not outcome.settled and shared.problem.reason == NODE_SILENT)


def _join_sentences(shared: tuple[SharedProblem, ...]) -> str:
    return fit("; ".join(entry.sentence for entry in shared))


def _suspended(status_input: StatusInput) -> _ConditionState:
    outcome, previous = status_input.outcome, status_input.previous
    if outcome.verdict is Verdict.SUSPENDED:
        if outcome.settled:
            return _ConditionState(SUSPENDED, True, SUSPENDED, "Nothing of the job runs until spec.suspend is false")
        return _ConditionState(SUSPENDED, False, SUSPENDING, "muster stops the ranks and deletes their pods")
    before = next((entry for entry in previous.conditions if entry.type == SUSPENDED), None)
    if previous.is_suspended or (before is not None and before.reason == RESUMED):
        return _ConditionState(SUSPENDED, False, RESUMED, "The job was suspended and has been resumed")
    return _ConditionState(SUSPENDED, False, "NotSuspended", "spec.suspend is not true")


def _final(kind: str, verdicts: tuple[Verdict, ...], outcome: Outcome, message: str) -> _ConditionState:
    if outcome.verdict in (Verdict.UNDECIDED, Verdict.SUSPENDED, Verdict.RESTARTING):
        return _ConditionState(kind, False, "NotOver", "The job has not ended")
    if outcome.verdict not in verdicts:
        return _ConditionState(kind, False, f"Not{kind}", f"The job {_RESULTS[outcome.verdict]}")
    if not outcome.settled:
        return _ConditionState(kind, False, STOPPING, "muster is stopping the remaining ranks")
    return _ConditionState(kind, True, outcome.reason, message)


def _condition(status_input: StatusInput, state: _ConditionState) -> Condition:
    status = "True" if state.holds else "False"
    return Condition(
        type=state.kind,
        status=status,
        reason=state.reason,
        message=state.message,
        last_transition_time=since(status_input.previous, state.kind, status) or format_seconds(status_input.now),
        observed_generation=status_input.job.metadata.generation,
    )
