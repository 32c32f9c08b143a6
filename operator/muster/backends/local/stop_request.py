"""What becomes of a wish to end the job that is said more than once. Pure."""

from dataclasses import replace

from muster.core.facts import StopRequest


def asked_to_stop(before: StopRequest | None, now: float, by: str, grace_seconds: float) -> StopRequest:
    """The wish as it stands at `now` (Unix seconds): only the grace shrinks, why and when stay the first one's."""
    if before is None:
        return StopRequest(now, by, grace_seconds)
    return replace(before, grace_seconds=min(grace_seconds, before.grace_seconds))
