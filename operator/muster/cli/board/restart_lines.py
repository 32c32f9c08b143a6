"""The restarts of a job as lines of the board and of a run's summary. Pure."""

from __future__ import annotations

from muster.api.plurals import pluralize
from muster.api.status.restarts import RestartRecord
from muster.api.status.status import Status
from muster.core.membership.member_text import describe_replaced_members, find_replaced_members

MAX_LINES = 3
"""The number of restarts that the board lists. One more line counts the earlier ones."""


def format_restarts(status: Status) -> tuple[str, ...]:
    """Format the last restarts, oldest first; empty if there was none."""
    restarts = status.restarts
    if restarts is None:
        return ()
    listed = restarts.history[-MAX_LINES:]
    earlier = restarts.total - len(listed)
    lines = [f"{pluralize(earlier, 'earlier restart')}"] if earlier > 0 else []
    members = {**{record.attempt: record.members for record in restarts.history}, status.attempt: status.members}
    return (*lines, *(_format_restart(record, members.get(record.attempt + 1)) for record in listed))


def _format_restart(record: RestartRecord, next_members: str | None) -> str:
    replaced = find_replaced_members(record.members, next_members)
    spares = f" · {describe_replaced_members(replaced)}" if replaced else ""
    lost = "" if record.seconds_lost is None else f" · {record.seconds_lost:.1f} s until all ranks ran again"
    steps = "" if record.steps_lost is None else f" · {pluralize(record.steps_lost, 'step')} to repeat"
    return f"attempt {record.attempt}: {record.message}{spares}{lost}{steps}"
