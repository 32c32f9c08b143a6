"""The status' conditions, as Kubernetes' API conventions want them."""

from dataclasses import dataclass

from muster.api.status import Condition, Status
from muster.plan.outcome import Outcome, Verdict
from muster.status.timestamps import to_seconds


@dataclass(frozen=True)
class _Claim:
    kind: str
    holds: bool
    reason: str
    message: str = ""


def conditions(
    previous: Status, outcome: Outcome, phase: str, message: str, generation: int, now: float
) -> tuple[Condition, ...]:
    """Accepted, Running, Complete, Failed; a transition time changes only when the condition's status does.

    Complete and Failed become True when nothing of the job runs any more, so that whoever waits for them finds its
    devices free.
    """
    claims = (
        _Claim("Accepted", True, "Valid", "The resource is valid"),
        _Claim("Running", phase == "Running", phase, message if not outcome.is_decided else ""),
        _final("Complete", outcome.verdict is Verdict.SUCCEEDED, outcome, message),
        _final("Failed", outcome.is_decided and outcome.verdict is not Verdict.SUCCEEDED, outcome, message),
    )
    return tuple(_condition(previous, claim, generation, now) for claim in claims)


def _final(kind: str, deserved: bool, outcome: Outcome, message: str) -> _Claim:
    if not outcome.is_decided:
        return _Claim(kind, False, "NotOver")
    if not deserved:
        return _Claim(kind, False, f"Not{kind}")
    if not outcome.settled:
        return _Claim(kind, False, "Stopping", "The ranks that are left are being stopped")
    return _Claim(kind, True, outcome.reason, message)


def _condition(previous: Status, claim: _Claim, generation: int, now: float) -> Condition:
    status = "True" if claim.holds else "False"
    before = next((entry for entry in previous.conditions if entry.type == claim.kind), None)
    kept = before is not None and before.status == status
    return Condition(
        type=claim.kind,
        status=status,
        reason=claim.reason,
        message=claim.message,
        last_transition_time=before.last_transition_time if before is not None and kept else to_seconds(now),
        observed_generation=generation,
    )
