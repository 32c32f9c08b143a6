"""How long to wait before retrying a failed request to AWS. Pure."""

from __future__ import annotations

from muster.objects.aws.errors import AwsError, Throttled

FIRST_SECONDS = 1.0
MAX_SECONDS = 60.0
_MAX_DOUBLINGS = 10


def backoff_seconds(failures: int, error: AwsError, draw: float) -> float:
    """Seconds to wait after `failures` consecutive failures, the last of them `error`; `draw` is random, in [0, 1)."""
    # A single failure needs no wait, and the rate limiter already delays a throttled operation.
    if failures <= 1 or isinstance(error, Throttled):
        return 0.0
    doubled = min(MAX_SECONDS, FIRST_SECONDS * float(1 << min(failures - 2, _MAX_DOUBLINGS)))
    return doubled * (0.5 + draw / 2)
