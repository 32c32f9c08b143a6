"""The status of a job that muster can't observe at the moment: the previous status, with the reason as message."""

from muster.api.status.status import Status
from muster.core.problem import Problem
from muster.core.status.conditions import ConditionState, make_condition
from muster.core.status.problems import TRANSIENT_REASONS
from muster.core.status.truncate import truncate_message


def build_unobserved_status(previous: Status, problem: Problem | None, generation: int, now: float) -> Status:
    """Add the problem with AWS to the message of `previous`, and to the condition Stalled if a user has to act.

    `problem` is None while the failure is too recent to report. `now` is in Unix seconds.
    """
    unchanged_status = previous.model_copy(update={"observed_generation": generation})
    if problem is None:
        return unchanged_status
    message = truncate_message(problem.message)
    if problem.reason in TRANSIENT_REASONS:
        return unchanged_status.model_copy(update={"message": message})
    stalled = make_condition(previous, ConditionState("Stalled", True, problem.reason, message), generation, now)
    others = tuple(entry for entry in previous.conditions if entry.type != "Stalled")
    return unchanged_status.model_copy(update={"message": message, "conditions": (*others, stalled)})
