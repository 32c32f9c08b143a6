"""The spares of a job as a line of the board. Pure."""

from __future__ import annotations

from muster.api.plurals import describe_share
from muster.api.status.status import Status


def format_spares(status: Status) -> tuple[str, ...]:
    """Format how many spares are ready, and why the others are not; empty without spares and after the job's end."""
    spares = status.spares
    if spares is None or status.completion_time is not None:
        return ()
    line = describe_share(spares.ready, spares.desired, "spare", "is ready", "are ready")
    return (f"{line}: {spares.message}" if spares.message else line,)
