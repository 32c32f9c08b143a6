"""Merge repeated requests to stop a job. Pure."""

from dataclasses import replace

from muster.core.facts import StopRequest


def merge_stop_request(before: StopRequest | None, now: float, by: str, grace_seconds: float) -> StopRequest:
    """Return the request at `now` (Unix seconds): a later one only shortens the grace period."""
    if before is None:
        return StopRequest(now, by, grace_seconds)
    return replace(before, grace_seconds=min(grace_seconds, before.grace_seconds))
