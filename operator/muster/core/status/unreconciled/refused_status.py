"""The status of a resource with an invalid spec."""

from muster.api.field_problems import InvalidResource
from muster.api.status.status import REFUSED, Status
from muster.core.status.conditions import ACCEPTED, RECONCILING, ConditionState, make_condition
from muster.core.status.ended_status import build_ended_status
from muster.core.status.truncate import truncate_message

MAX_PROBLEMS = 3
"""The maximum number of problems in a sentence, which counts the other problems."""

_REFUSED_CONDITIONS = {ACCEPTED: False, RECONCILING: False, "Stalled": True}


def make_refused_status(previous: Status, invalid: InvalidResource, generation: int, now: float) -> Status:
    """Return `previous` with the message that muster refuses the resource's `generation`; `now` is in Unix seconds.

    A job that already runs keeps its phase. Otherwise the phase is Refused until a user corrects the spec.
    """
    if previous.final_condition is not None:
        return build_ended_status(previous, generation, now)
    message = _format_message(invalid)
    changed = tuple(
        make_condition(previous, ConditionState(condition_type, is_true, invalid.reason, message), generation, now)
        for condition_type, is_true in _REFUSED_CONDITIONS.items()
    )
    other_conditions = tuple(entry for entry in previous.conditions if entry.type not in _REFUSED_CONDITIONS)
    conditions = (changed[0], *other_conditions, *changed[1:])
    phase = previous.phase if previous.was_ever_started else REFUSED
    fields = {"observed_generation": generation, "phase": phase, "message": message, "conditions": conditions}
    return previous.model_copy(update=fields)


def _format_message(invalid: InvalidResource) -> str:
    problems = invalid.problems
    more = len(problems) - MAX_PROBLEMS + invalid.omitted_count
    lines = [str(problem) for problem in problems[:MAX_PROBLEMS]] + ([f"and {more} more"] if more > 0 else [])
    return truncate_message(f"muster refuses the resource: {'; '.join(lines)}")
