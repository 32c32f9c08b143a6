"""The status of a job that muster can't observe at the moment: the previous status, with the reason."""

from muster.api.status.status import Condition, Status
from muster.api.timestamps import format_seconds
from muster.core.facts import Problem
from muster.core.status.conditions import since
from muster.core.status.fit import fit
from muster.core.status.problems import TRANSIENT_REASONS


def without_observation(previous: Status, problem: Problem | None, generation: int, now: float) -> Status:
    """Add to `previous` why AWS can't be reached: to the message, and to Stalled if a user has to act.

    `problem` is None while the failure is too recent to report. `now` is in Unix seconds.
    """
    kept = previous.model_copy(update={"observed_generation": generation})
    if problem is None:
        return kept
    message = fit(problem.message)
    if problem.reason in TRANSIENT_REASONS:
        return kept.model_copy(update={"message": message})
    stalled = Condition(
        type="Stalled",
        status="True",
        reason=problem.reason,
        message=message,
        last_transition_time=since(previous, "Stalled", "True") or format_seconds(now),
        observed_generation=generation,
    )
    others = tuple(entry for entry in previous.conditions if entry.type != "Stalled")
    return kept.model_copy(update={"message": message, "conditions": (*others, stalled)})
