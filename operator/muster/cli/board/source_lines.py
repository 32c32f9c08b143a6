"""The edited code of a job as lines of the board. Pure."""

from __future__ import annotations

from muster.api.status.status import Status


def format_source(status: Status) -> tuple[str, ...]:
    """Return a line if the ranks run other code than the spec's; empty otherwise."""
    return () if status.source is None else (f"the ranks run the edited code of ConfigMap {status.source.config_map}",)
