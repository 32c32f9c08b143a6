"""How long to wait before a place that failed is asked again. Pure."""

from __future__ import annotations

from muster.objects.aws.errors import AwsError, Throttled

FIRST_SECONDS = 1.0
MAX_SECONDS = 60.0
_MAX_DOUBLINGS = 10


def backoff_seconds(failures: int, error: AwsError, draw: float) -> float:
    """Seconds to wait after so many failures in a row, the last of them `error`; `draw` is random, of [0, 1)."""
    # One answer of many is lost now and then; and what came too fast already waits at its gate for longer.
    if failures <= 1 or isinstance(error, Throttled):
        return 0.0
    doubled = min(MAX_SECONDS, FIRST_SECONDS * float(1 << min(failures - 2, _MAX_DOUBLINGS)))
    return doubled * (0.5 + draw / 2)
