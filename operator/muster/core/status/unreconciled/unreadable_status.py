"""The status of a job whose stored status is invalid: the stored fields with a message."""

from collections.abc import Mapping, Sequence

from muster.api.document import JSON
from muster.api.field_problems import FieldProblem
from muster.api.status.rules import MAX_CONDITIONS
from muster.api.timestamps import format_timestamp
from muster.core.status.truncate import truncate_message

REASON = "StatusUnreadable"

_REPAIR = "muster ignores the job until you correct it: kubectl edit --subresource=status"


def make_unreadable_status(
    status_fields: Mapping[str, JSON], problems: Sequence[FieldProblem], generation: int, now: float
) -> dict[str, JSON]:
    """Return `status_fields` with a message about their problems; `now` is in Unix seconds.

    The condition Stalled also gets the message, if the list of conditions is valid and not full.
    """
    message = truncate_message(f"The status can't be read, and {_REPAIR}: {'; '.join(map(str, problems))}")
    # Don't overwrite parts that could not be read.
    if any(problem.path == "status" for problem in problems):
        return {"message": message}
    fields: dict[str, JSON] = {**status_fields, "message": message}
    conditions = status_fields.get("conditions", [])
    if not isinstance(conditions, list):
        return fields
    previous = next((entry for entry in conditions if _is_stalled(entry)), None)
    others = [entry for entry in conditions if not _is_stalled(entry)]
    if len(others) >= MAX_CONDITIONS:
        return fields
    since = (
        previous.get("lastTransitionTime") if isinstance(previous, dict) and previous.get("status") == "True" else None
    )
    stalled: JSON = {
        "type": "Stalled",
        "status": "True",
        "reason": REASON,
        "message": message,
        "lastTransitionTime": since if isinstance(since, str) else format_timestamp(now),
        "observedGeneration": generation,
    }
    return {**fields, "conditions": [*others, stalled]}


def _is_stalled(entry: JSON) -> bool:
    return isinstance(entry, dict) and entry.get("type") == "Stalled"
