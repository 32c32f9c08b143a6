"""The status' record of the last restart that a user has requested.

muster writes the record before it stops the ranks, and again with the next attempt. So a new leader neither forgets nor
repeats the request.
"""

from muster.api.status.restarts import MAX_RESIZE_REASON_CHARS, RestartRequest
from muster.api.timestamps import format_timestamp_milliseconds
from muster.core.restart_requests import is_new_request
from muster.core.restarts import Restart
from muster.core.status.views import StatusInput


def build_restart_request(status_input: StatusInput) -> RestartRequest | None:
    """Return the record after this decision; None if no restart was ever requested."""
    record, refused_value = _find_record(status_input), _find_refused_value(status_input)
    if record is not None:
        return record.model_copy(update={"refused_value": refused_value})
    return RestartRequest(value="", refused_value=refused_value) if refused_value else None


def _find_refused_value(status_input: StatusInput) -> str:
    """Return the request that muster refuses because its edited code can't be used; "" without one."""
    source, value = status_input.facts.requested_source, status_input.facts.restart_request
    is_refused = source is not None and source.problem and is_new_request(status_input.previous, status_input.facts)
    return (value or "") if is_refused and status_input.previous.was_started else ""


def _find_record(status_input: StatusInput) -> RestartRequest | None:
    outcome, before, value = (
        status_input.outcome,
        status_input.previous.restart_request,
        status_input.facts.restart_request,
    )
    if outcome.restart is not None and outcome.is_restart_requested and not outcome.is_idle:
        return _begin_request(before, value or "", outcome.restart)
    # The next start comes after the request, so it fulfils the request.
    if value is not None and (outcome.is_restart_due or not status_input.previous.was_started):
        return RestartRequest(value=value)
    # Drop the record of a resize that no request preceded.
    is_unused = before is None or not before.value or (bool(before.resize_reason) and value is None)
    return None if before is None or is_unused else RestartRequest(value=before.value)


def _begin_request(before: RestartRequest | None, value: str, restart: Restart) -> RestartRequest:
    if before is not None and before.is_pending:
        return before
    return RestartRequest(
        value=value,
        stopping_since=format_timestamp_milliseconds(restart.failed_at),
        resize_reason=restart.resize_reason[:MAX_RESIZE_REASON_CHARS],
    )
