"""Decide whether muster must write a change of the status at once. Changes of progress may wait."""

from muster.api.status.restarts import Restarts
from muster.api.status.status import Status
from muster.api.status.stragglers import StragglerRecord
from muster.core.failure.ends import STRAGGLER

_PHASES_OF_START = ("Pending", "Queued", "Starting")


def is_significant_change(before: Status, after: Status) -> bool:
    """Whether `after` differs in more than progress: in a phase, a condition, a rank's state or its end.

    Before the ranks run, the number of started pods and the sentences about them are progress as well.
    """
    return _drop_progress(before) != _drop_progress(after)


def _drop_progress(status: Status) -> Status:
    if status.phase in _PHASES_OF_START:
        status = _drop_progress_of_start(status)
    ranks = status.ranks
    if ranks is not None:
        details = tuple(entry.model_copy(update={"step": None}) for entry in ranks.details if entry.reason != STRAGGLER)
        ranks = ranks.model_copy(update={"by_step": (), "details": details})
    message = "" if status.phase == "Running" else status.message
    conditions = tuple(
        entry.model_copy(update={"message": ""}) if entry.type == "Running" else entry for entry in status.conditions
    )
    return status.model_copy(
        update={
            "progress": None,
            "ranks": ranks,
            "message": message,
            "conditions": conditions,
            "goodput": None,
            "stragglers": _keep_only_failure(status.stragglers),
            "restarts": _drop_steps_lost(status.restarts),
        }
    )


def _drop_progress_of_start(status: Status) -> Status:
    ranks = status.ranks
    if ranks is not None:
        ranks = ranks.model_copy(update={"by_state": (), "running": 0, "ready": ""})
    conditions = tuple(entry.model_copy(update={"message": ""}) for entry in status.conditions)
    return status.model_copy(
        update={"message": "", "conditions": conditions, "nodes": None, "network": None, "ranks": ranks}
    )


def _keep_only_failure(record: StragglerRecord | None) -> StragglerRecord | None:
    """Drop stragglers that fail no attempt, because ranks near the limit and forged reports change all the time."""
    return record if record is not None and record.is_failure else None


def _drop_steps_lost(restarts: Restarts | None) -> Restarts | None:
    if restarts is None:
        return None
    history = tuple(record.model_copy(update={"steps_lost": None}) for record in restarts.history)
    return restarts.model_copy(update={"history": history})
