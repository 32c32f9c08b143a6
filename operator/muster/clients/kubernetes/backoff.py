"""How long to wait before an API server that failed is asked again. Pure."""

from __future__ import annotations

from muster.objects.kubernetes.errors import ApiError

FIRST_SECONDS = 0.2
MAX_SECONDS = 15.0
_MAX_DOUBLINGS = 10


def backoff_seconds(failures: int, error: ApiError | None, draw: float) -> float:
    """Seconds to wait after so many failures in a row, the last of them `error`; `draw` is random, of [0, 1).

    Doubles each time, and is spread so that many who failed together don't come back together. What the API server
    asks for is the least.
    """
    doubled = min(MAX_SECONDS, FIRST_SECONDS * float(1 << min(failures, _MAX_DOUBLINGS)))
    asked = error.retry_after if error is not None and error.retry_after is not None else 0.0
    return max(doubled * (0.5 + draw / 2), asked * (1 + draw / 4))
