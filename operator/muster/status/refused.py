"""The status of a resource that can't be a job as it is written."""

from muster.api.field_problems import InvalidResource
from muster.api.status import REFUSED, Condition, Status
from muster.api.timestamps import to_seconds
from muster.status.after_the_end import after_the_end
from muster.status.conditions import ACCEPTED, since
from muster.status.sentences import fit

MAX_PROBLEMS = 3
"""Problems in a sentence before it says how many more."""

_TURNED = {ACCEPTED: "False", "Stalled": "True"}


def refused(previous: Status, invalid: InvalidResource, generation: int, now: float) -> Status:
    """`previous` with the word that the resource's `generation` is refused, and why; `now` is in Unix seconds.

    What is known of an earlier version that runs stays; any other job's phase is Refused, until its spec is corrected.
    """
    if previous.final_condition is not None:
        return after_the_end(previous, generation, now)
    message = _message(invalid)
    turned = tuple(
        Condition(
            type=kind,
            status=status,
            reason=invalid.reason,
            message=message,
            last_transition_time=since(previous, kind, status) or to_seconds(now),
            observed_generation=generation,
        )
        for kind, status in _TURNED.items()
    )
    kept = tuple(entry for entry in previous.conditions if entry.type not in _TURNED)
    conditions = (turned[0], *kept, turned[1])
    phase = previous.phase if previous.was_started else REFUSED
    fields = {"observed_generation": generation, "phase": phase, "message": message, "conditions": conditions}
    return previous.model_copy(update=fields)


def _message(invalid: InvalidResource) -> str:
    problems = invalid.problems
    more = len(problems) - MAX_PROBLEMS + invalid.left_out
    lines = [str(problem) for problem in problems[:MAX_PROBLEMS]] + ([f"and {more} more"] if more > 0 else [])
    return fit(f"The resource is refused: {'; '.join(lines)}")
