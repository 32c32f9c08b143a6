"""Find out whether a change of the status must be written at once. Progress may wait."""

from muster.api.status.status import Status


def is_significant_change(before: Status, after: Status) -> bool:
    """Whether `after` differs in more than progress: in a phase, a condition, a rank's state or its end."""
    return _without_progress(before) != _without_progress(after)


def _without_progress(status: Status) -> Status:
    ranks = status.ranks
    if ranks is not None:
        details = tuple(entry.model_copy(update={"step": None}) for entry in ranks.details)
        ranks = ranks.model_copy(update={"by_step": (), "details": details})
    message = "" if status.phase == "Running" else status.message
    conditions = tuple(
        entry.model_copy(update={"message": ""}) if entry.type == "Running" else entry for entry in status.conditions
    )
    return status.model_copy(update={"progress": None, "ranks": ranks, "message": message, "conditions": conditions})
