"""The status of a job that is over: the report of the run stays, whatever happens to the spec."""

from muster.api.changes import OVER_SENTENCE
from muster.api.status import Condition, Status
from muster.api.timestamps import to_seconds
from muster.status.conditions import ACCEPTED, since

JOB_IS_OVER = "JobIsOver"
"""The reason when the spec was changed after the job's end: muster never runs the changed spec."""


def after_the_end(previous: Status, generation: int, now: float) -> Status:
    """`previous`, which says Complete or Failed, once the resource is at `generation`; `now` is in Unix seconds.

    The final condition names the generation that ran. For any later one the condition Accepted is False.
    """
    final = previous.final_condition
    kept = previous.model_copy(update={"observed_generation": generation})
    # A status without this number was written by hand: it doesn't tell which spec ran.
    if final is None or final.observed_generation == 0 or generation <= final.observed_generation:
        return kept
    accepted = Condition(
        type=ACCEPTED,
        status="False",
        reason=JOB_IS_OVER,
        message=f"The changed spec was not run, and will not be: {OVER_SENTENCE}",
        last_transition_time=since(previous, ACCEPTED, "False") or to_seconds(now),
        observed_generation=generation,
    )
    others = tuple(entry for entry in previous.conditions if entry.type != ACCEPTED)
    return kept.model_copy(update={"conditions": (accepted, *others)})
