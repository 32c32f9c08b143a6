"""How long to wait before retrying a failed request to the API server. Pure."""

from __future__ import annotations

from muster.objects.kubernetes.errors import ApiError

FIRST_SECONDS = 0.2
MAX_SECONDS = 15.0
_MAX_DOUBLINGS = 10


def backoff_seconds(failures: int, error: ApiError | None, draw: float) -> float:
    """Seconds to wait after `failures` consecutive failures, the last of them `error`; `draw` is random, in [0, 1).

    The time doubles with each failure, and is random so that clients that failed together don't return together. It is
    at least the API server's Retry-After.
    """
    doubled = min(MAX_SECONDS, FIRST_SECONDS * float(1 << min(failures, _MAX_DOUBLINGS)))
    asked = error.retry_after if error is not None and error.retry_after is not None else 0.0
    return max(doubled * (0.5 + draw / 2), asked * (1 + draw / 4))
