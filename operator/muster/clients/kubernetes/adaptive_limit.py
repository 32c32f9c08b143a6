"""Limit the concurrent requests of each namespace by the latency of responses. No I/O, no clock.

When an API server is overloaded, more concurrent requests only delay all of them. So the limit falls while latencies
are much longer than the shortest recent latency, and otherwise grows, like the window of TCP Vegas. The formula is
"Gradient2" of Netflix' concurrency-limits.
"""

from __future__ import annotations

from dataclasses import dataclass, field

INITIAL_LIMIT = 8.0
"""The limit of a namespace without measurements."""

MIN_LIMIT = 4.0
"""The minimum limit. `MIN_GRADIENT * MIN_LIMIT + QUEUE_ALLOWANCE` is `MIN_LIMIT` again."""

MIN_GRADIENT = 0.5
"""The minimum of the gradient, because a single response may be very late by chance."""

TOLERATED_RATIO = 2.0
"""Latencies up to this multiple of the shortest latency don't count as queueing."""

QUEUE_ALLOWANCE = 2.0
"""The number of requests that may wait at the API server, so that it is never idle."""

SMOOTHING = 0.2
"""The weight of one response compared with earlier responses."""

LATENCY_WINDOW_SECONDS = 300.0
"""The shortest latency expires after one or two such intervals: an API server may become slower permanently."""


@dataclass
class ShortestLatency:
    """The shortest latency of one kind of request, in the last five to ten minutes."""

    interval_start: float
    current: float
    previous: float

    def take(self, seconds: float, at: float) -> float:
        """Record a response at time `at` with this latency; return the shortest latency."""
        if at - self.interval_start > LATENCY_WINDOW_SECONDS:
            self.previous = self.current if at - self.interval_start <= 2 * LATENCY_WINDOW_SECONDS else seconds
            self.interval_start, self.current = at, seconds
        self.current = min(self.current, seconds)
        return min(self.current, self.previous)


@dataclass
class AdaptiveLimit:
    """The limits of all namespaces, at most `maximum` each. Times are in seconds of one clock."""

    maximum: int
    _shortest: dict[str, ShortestLatency] = field(default_factory=dict)
    _limits: dict[str, float] = field(default_factory=dict)

    def get_limit(self, namespace: str) -> int:
        """Return the namespace's current limit of concurrent requests."""
        return int(self._limits.get(namespace, INITIAL_LIMIT))

    def record_latency(self, namespace: str, kind: str, seconds: float, at: float) -> None:
        """Record a request's latency. It is compared only with requests of the same kind."""
        shortest = self._shortest.setdefault(kind, ShortestLatency(at, seconds, seconds)).take(seconds, at)
        # A latency of zero can't be compared.
        gradient = max(MIN_GRADIENT, min(1.0, TOLERATED_RATIO * shortest / seconds)) if seconds > 0 else 1.0
        self._adjust(namespace, gradient)

    def record_failure(self, namespace: str) -> None:
        """Record a request without a response, or with the response "too many requests"."""
        self._adjust(namespace, MIN_GRADIENT)

    def forget(self, namespace: str) -> None:
        """Drop the limit of an idle namespace, because it would soon be outdated."""
        self._limits.pop(namespace, None)

    def _adjust(self, namespace: str, gradient: float) -> None:
        limit = self._limits.get(namespace, INITIAL_LIMIT)
        target = limit * gradient + QUEUE_ALLOWANCE
        self._limits[namespace] = max(MIN_LIMIT, min(self.maximum, limit + SMOOTHING * (target - limit)))
