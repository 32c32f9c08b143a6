"""The status of a job that has ended: only observedGeneration and the condition Accepted still change."""

from muster.api.changes import ENDED_MESSAGE
from muster.api.status.status import Status
from muster.core.status.conditions import ACCEPTED, ConditionState, make_condition

JOB_IS_OVER = "JobIsOver"
"""The reason if the spec changed after the job's end. muster never runs the changed spec."""


def build_ended_status(previous: Status, generation: int, now: float) -> Status:
    """Update `previous`, which is Complete or Failed, for the resource's `generation`; `now` is in Unix seconds.

    The final condition has the generation that ran. For a later generation, the condition Accepted becomes False.
    """
    final = previous.final_condition
    unchanged_status = previous.model_copy(update={"observed_generation": generation})
    # A user has removed the number from the status, so the generation that ran is unknown.
    if final is None or final.observed_generation == 0 or generation <= final.observed_generation:
        return unchanged_status
    message = f"muster does not run the changed spec: {ENDED_MESSAGE}"
    accepted = make_condition(previous, ConditionState(ACCEPTED, False, JOB_IS_OVER, message), generation, now)
    others = tuple(entry for entry in previous.conditions if entry.type != ACCEPTED)
    return unchanged_status.model_copy(update={"conditions": (accepted, *others)})
