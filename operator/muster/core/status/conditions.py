"""The status' conditions, following Kubernetes' API conventions."""

from dataclasses import dataclass

from muster.api.amounts import capital, share
from muster.api.status.status import RESUMED, STOPPING, SUSPENDED, SUSPENDING, Condition, Status
from muster.api.timestamps import to_seconds
from muster.core.facts import Problem
from muster.core.failure.problems import NODE_SILENT
from muster.core.gang_release import GANG_RELEASED
from muster.core.judge import Outcome, Verdict
from muster.core.status.no_problem import why_not_stalled
from muster.core.status.problems import PASSING, SharedProblem, shared_problems
from muster.core.status.released import released
from muster.core.status.sentences import fit
from muster.core.status.views import RUNNING, Picture

ACCEPTED = "Accepted"
"""The condition that says whether the operator runs the current spec."""

NODES_NOT_PLACED = "NodesNotPlaced"
"""Nodes wait to be scheduled, which is normal for a while: no problem is known."""

REMARKS = "ValidWithRemarks"
"""The reason for a spec with fields that have no effect."""


_ENDS = {Verdict.SUCCEEDED: "succeeded", Verdict.FAILED: "failed", Verdict.STOPPED: "was stopped"}


@dataclass(frozen=True)
class _Claim:
    kind: str
    holds: bool
    reason: str
    message: str


def conditions(picture: Picture, phase: str, message: str) -> tuple[Condition, ...]:
    """Build the conditions Accepted, Scheduled, Running, Stalled, Suspended, Complete, Failed.

    A transition time changes only with the condition's status. Complete and Failed become True when nothing of the job
    runs any more, so that a job that waits for its devices finds them free.
    """
    outcome = picture.outcome
    claims = (
        _accepted(picture),
        _scheduled(picture),
        _running(picture, phase, message),
        _stalled(picture, message),
        _suspended(picture),
        _final("Complete", (Verdict.SUCCEEDED,), outcome, message),
        _final("Failed", (Verdict.FAILED, Verdict.STOPPED), outcome, message),
    )
    return tuple(_condition(picture, claim) for claim in claims)


def since(previous: Status, kind: str, status: str) -> str | None:
    """The time since when the condition has had this status; None if it had another one, or none."""
    before = next((entry for entry in previous.conditions if entry.type == kind), None)
    return before.last_transition_time if before is not None and before.status == status else None


def refusal_of(picture: Picture) -> Problem | None:
    """The problem that keeps muster from creating any node of the job; None once the job has started."""
    outcome = picture.outcome
    return None if outcome.started or outcome.is_decided else picture.facts.refusal


def _accepted(picture: Picture) -> _Claim:
    refusal = refusal_of(picture)
    if refusal is not None:
        return _Claim(ACCEPTED, False, refusal.reason, fit(refusal.message))
    remarks = picture.facts.remarks
    if remarks:
        return _Claim(ACCEPTED, True, REMARKS, fit(f"The resource is valid; {'; '.join(remarks)}"))
    return _Claim(ACCEPTED, True, "Valid", "The resource is valid")


def _scheduled(picture: Picture) -> _Claim:
    outcome, nodes = picture.outcome, picture.facts.nodes
    if outcome.verdict is Verdict.SUSPENDED and outcome.settled:
        return _Claim("Scheduled", False, SUSPENDED, "No node of the job is scheduled")
    given_up = released(picture)
    if given_up is not None:
        return _Claim("Scheduled", False, GANG_RELEASED, fit(given_up))
    unplaced = tuple(node for node in nodes if not node.is_placed)
    # Nodes that were lost later had been scheduled.
    if outcome.started or not unplaced:
        words = "The node is scheduled" if len(nodes) == 1 else "All nodes are scheduled"
        return _Claim("Scheduled", True, "AllNodesPlaced", words)
    problem = picture.facts.problem
    if problem is not None:
        return _Claim("Scheduled", False, problem.reason, fit(problem.message))
    shared = shared_problems(unplaced, len(nodes))
    if shared:
        return _Claim("Scheduled", False, shared[0].problem.reason, _sentences(shared))
    words = capital(share(len(unplaced), len(nodes), "node", "is not scheduled yet", "are not scheduled yet"))
    return _Claim("Scheduled", False, NODES_NOT_PLACED, words)


def _running(picture: Picture, phase: str, message: str) -> _Claim:
    if phase == "Running":
        return _Claim("Running", True, phase, message)
    running = sum(view.state == RUNNING for view in picture.views)
    words = capital(share(running, len(picture.views), "rank", "runs", "run")) if running else "No rank runs"
    return _Claim("Running", False, phase, f"{words}: the job's phase is {phase}")


def _stalled(picture: Picture, message: str) -> _Claim:
    outcome, refusal = picture.outcome, refusal_of(picture)
    if refusal is not None:
        return _Claim("Stalled", True, refusal.reason, fit(refusal.message))
    if outcome.verdict in (Verdict.FAILED, Verdict.STOPPED) and outcome.settled:
        return _Claim("Stalled", True, outcome.reason, message)
    problem = picture.facts.problem
    if problem is not None and problem.reason not in PASSING:
        return _Claim("Stalled", True, problem.reason, fit(problem.message))
    shared = shared_problems(picture.facts.nodes, len(picture.facts.nodes))
    # A job that has ended waits only for silent agents.
    for_people = tuple(entry for entry in shared if not entry.passes and _concerns(outcome, entry))
    if for_people:
        return _Claim("Stalled", True, for_people[0].problem.reason, _sentences(for_people))
    return _Claim("Stalled", False, *why_not_stalled(picture))


def _concerns(outcome: Outcome, shared: SharedProblem) -> bool:
    return not outcome.is_decided or (not outcome.settled and shared.problem.reason == NODE_SILENT)


def _sentences(shared: tuple[SharedProblem, ...]) -> str:
    return fit("; ".join(entry.sentence for entry in shared))


def _suspended(picture: Picture) -> _Claim:
    outcome, previous = picture.outcome, picture.previous
    if outcome.verdict is Verdict.SUSPENDED:
        if outcome.settled:
            return _Claim(SUSPENDED, True, SUSPENDED, "Nothing of the job runs until spec.suspend is false")
        return _Claim(SUSPENDED, False, SUSPENDING, "muster stops the ranks and deletes their pods")
    before = next((entry for entry in previous.conditions if entry.type == SUSPENDED), None)
    if previous.is_suspended or (before is not None and before.reason == RESUMED):
        return _Claim(SUSPENDED, False, RESUMED, "The job was suspended and has been resumed")
    return _Claim(SUSPENDED, False, "NotSuspended", "spec.suspend is not true")


def _final(kind: str, verdicts: tuple[Verdict, ...], outcome: Outcome, message: str) -> _Claim:
    if outcome.verdict in (Verdict.UNDECIDED, Verdict.SUSPENDED):
        return _Claim(kind, False, "NotOver", "The job has not ended")
    if outcome.verdict not in verdicts:
        return _Claim(kind, False, f"Not{kind}", f"The job {_ENDS[outcome.verdict]}")
    if not outcome.settled:
        return _Claim(kind, False, STOPPING, "muster is stopping the remaining ranks")
    return _Claim(kind, True, outcome.reason, message)


def _condition(picture: Picture, claim: _Claim) -> Condition:
    status = "True" if claim.holds else "False"
    return Condition(
        type=claim.kind,
        status=status,
        reason=claim.reason,
        message=claim.message,
        last_transition_time=since(picture.previous, claim.kind, status) or to_seconds(picture.now),
        observed_generation=picture.job.metadata.generation,
    )
