"""Limit rates by key with token buckets, in bounded memory. No I/O."""

from collections import OrderedDict
from dataclasses import dataclass


@dataclass(frozen=True)
class Rate:
    """A rate: `per_second` on average, and at most `burst` at once."""

    per_second: float
    burst: float


@dataclass
class _Bucket:
    tokens: float
    filled_at: float


class TokenBuckets:
    """A token bucket for each key. A key with a negative balance has to wait.

    Beyond the maximum number of keys, the least recently used bucket is dropped.
    """

    def __init__(self, rate: Rate, max_keys: int) -> None:
        self._rate = rate
        self._max_keys = max_keys
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def get_balance(self, key: str, now: float) -> float:
        """Return the tokens of `key` at `now` (seconds), which may be negative."""
        return self._get_bucket(key, now).tokens if key in self._buckets else self._rate.burst

    def charge(self, key: str, amount: float, now: float) -> None:
        """Reduce the key's balance; a negative amount is a refund."""
        bucket = self._get_bucket(key, now)
        bucket.tokens = min(self._rate.burst, bucket.tokens - amount)

    def get_wait_seconds(self, key: str, now: float) -> float:
        """Return the seconds until the key's balance is not negative."""
        return max(0.0, -self.get_balance(key, now) / self._rate.per_second)

    def __len__(self) -> int:
        return len(self._buckets)

    def _get_bucket(self, key: str, now: float) -> _Bucket:
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(self._rate.burst, now)
            if len(self._buckets) > self._max_keys:
                self._buckets.popitem(last=False)
            return bucket
        self._buckets.move_to_end(key)
        # the clock may be set back
        elapsed = max(0.0, now - bucket.filled_at)
        bucket.tokens = min(self._rate.burst, bucket.tokens + elapsed * self._rate.per_second)
        bucket.filled_at = now
        return bucket


class RequestLimiter:
    """Limits the rate of each key's requests: each request takes one token."""

    def __init__(self, rate: Rate, max_keys: int) -> None:
        self._rate = rate
        self._balances = TokenBuckets(rate, max_keys)

    def take_token(self, key: str, now: float) -> float:
        """Take one token at `now` (seconds). Return 0, or the seconds until a token is available."""
        tokens = self._balances.get_balance(key, now)
        if tokens >= 1.0:
            self._balances.charge(key, 1.0, now)
            return 0.0
        return (1.0 - tokens) / self._rate.per_second

    def return_token(self, key: str, now: float) -> None:
        """Return the last token."""
        self._balances.charge(key, -1.0, now)

    def is_empty(self, key: str, now: float) -> bool:
        """Whether `take_token` would have to wait."""
        return self._balances.get_balance(key, now) < 1.0

    def __len__(self) -> int:
        return len(self._balances)
