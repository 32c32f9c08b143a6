"""How often somebody may ask: token buckets, one a key, in bounded memory. Pure but for what it remembers."""

from collections import OrderedDict
from dataclasses import dataclass


@dataclass(frozen=True)
class Rate:
    """`per_second` in the long run, `burst` at once."""

    per_second: float
    burst: float


@dataclass
class _Bucket:
    tokens: float
    filled_at: float


class Limiter:
    """A token bucket for each key. The key that was used longest ago is forgotten when there are too many."""

    def __init__(self, rate: Rate, max_keys: int) -> None:
        self._rate = rate
        self._max_keys = max_keys
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, key: str, now: float) -> float:
        """Take one token at `now` (seconds). 0 when there was one, else the seconds until there will be."""
        bucket = self._bucket(key, now)
        if bucket.tokens >= 1.0:
            bucket.tokens -= 1.0
            return 0.0
        return (1.0 - bucket.tokens) / self._rate.per_second

    def is_empty(self, key: str, now: float) -> bool:
        """Whether `take` would have to wait. Takes nothing."""
        return key in self._buckets and self._bucket(key, now).tokens < 1.0

    def __len__(self) -> int:
        return len(self._buckets)

    def _bucket(self, key: str, now: float) -> _Bucket:
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(self._rate.burst, now)
            if len(self._buckets) > self._max_keys:
                self._buckets.popitem(last=False)
            return bucket
        self._buckets.move_to_end(key)
        # a clock set back must not empty a bucket
        elapsed = max(0.0, now - bucket.filled_at)
        bucket.tokens = min(self._rate.burst, bucket.tokens + elapsed * self._rate.per_second)
        bucket.filled_at = now
        return bucket
