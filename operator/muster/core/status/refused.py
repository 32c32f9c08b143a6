"""The status of a resource with an invalid spec."""

from muster.api.field_problems import InvalidResource
from muster.api.status.status import REFUSED, Condition, Status
from muster.api.timestamps import format_seconds
from muster.core.status.conditions import ACCEPTED, since
from muster.core.status.ended_status import ended_status
from muster.core.status.fit import fit

MAX_PROBLEMS = 3
"""Problems in a sentence before it counts the rest."""

_NEW_STATUSES = {ACCEPTED: "False", "Stalled": "True"}


def refused(previous: Status, invalid: InvalidResource, generation: int, now: float) -> Status:
    """Add to `previous` that the resource's `generation` is refused, and why; `now` is in Unix seconds.

    An earlier version that runs keeps its phase. Otherwise the phase is Refused until the spec is corrected.
    """
    if previous.final_condition is not None:
        return ended_status(previous, generation, now)
    message = _message(invalid)
    changed = tuple(
        Condition(
            type=kind,
            status=status,
            reason=invalid.reason,
            message=message,
            last_transition_time=since(previous, kind, status) or format_seconds(now),
            observed_generation=generation,
        )
        for kind, status in _NEW_STATUSES.items()
    )
    kept = tuple(entry for entry in previous.conditions if entry.type not in _NEW_STATUSES)
    conditions = (changed[0], *kept, changed[1])
    phase = previous.phase if previous.was_ever_started else REFUSED
    fields = {"observed_generation": generation, "phase": phase, "message": message, "conditions": conditions}
    return previous.model_copy(update=fields)


def _message(invalid: InvalidResource) -> str:
    problems = invalid.problems
    more = len(problems) - MAX_PROBLEMS + invalid.left_out
    lines = [str(problem) for problem in problems[:MAX_PROBLEMS]] + ([f"and {more} more"] if more > 0 else [])
    return fit(f"muster refuses the resource: {'; '.join(lines)}")
