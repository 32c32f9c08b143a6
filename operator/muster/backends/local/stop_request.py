"""Merge repeated requests to stop a job. Pure."""

from dataclasses import replace

from muster.core.facts import StopRequest


def merge_stop_request(previous: StopRequest | None, now: float, by: str, grace_seconds: float) -> StopRequest:
    """Add a request at `now` (Unix seconds) to the previous one; it can only shorten the grace period."""
    if previous is None:
        return StopRequest(now, by, grace_seconds)
    return replace(previous, grace_seconds=min(grace_seconds, previous.grace_seconds))
