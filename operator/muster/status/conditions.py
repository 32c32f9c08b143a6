"""The status' conditions, as Kubernetes' API conventions want them."""

from dataclasses import dataclass

from muster.api.status import Condition
from muster.api.timestamps import to_seconds
from muster.plan.outcome import Outcome, Verdict
from muster.status.views import Picture


@dataclass(frozen=True)
class _Claim:
    kind: str
    holds: bool
    reason: str
    message: str = ""


def conditions(picture: Picture, phase: str, message: str) -> tuple[Condition, ...]:
    """Accepted, Running, Complete, Failed; a transition time changes only when the condition's status does.

    Complete and Failed become True when nothing of the job runs any more, so that whoever waits for them finds its
    devices free.
    """
    outcome = picture.outcome
    claims = (
        _Claim("Accepted", True, "Valid", "The resource is valid"),
        _Claim("Running", phase == "Running", phase, message if not outcome.is_decided else ""),
        _final("Complete", (Verdict.SUCCEEDED,), outcome, message),
        _final("Failed", (Verdict.FAILED, Verdict.STOPPED), outcome, message),
    )
    return tuple(_condition(picture, claim) for claim in claims)


def _final(kind: str, verdicts: tuple[Verdict, ...], outcome: Outcome, message: str) -> _Claim:
    if not outcome.is_decided:
        return _Claim(kind, False, "NotOver")
    if outcome.verdict not in verdicts:
        return _Claim(kind, False, f"Not{kind}")
    if not outcome.settled:
        return _Claim(kind, False, "Stopping", "The ranks that are left are being stopped")
    return _Claim(kind, True, outcome.reason, message)


def _condition(picture: Picture, claim: _Claim) -> Condition:
    status = "True" if claim.holds else "False"
    before = next((entry for entry in picture.previous.conditions if entry.type == claim.kind), None)
    kept = before is not None and before.status == status
    return Condition(
        type=claim.kind,
        status=status,
        reason=claim.reason,
        message=claim.message,
        last_transition_time=before.last_transition_time if before is not None and kept else to_seconds(picture.now),
        observed_generation=picture.job.metadata.generation,
    )
