"""Limit the concurrent requests of each namespace by the latency of responses. No I/O, no clock.

Beyond an API server's capacity, more concurrent requests only delay all requests, including those of other namespaces
and clients. So the limit falls while responses take much longer than the shortest recent one, and grows otherwise, like
the window of TCP Vegas. The formula is "Gradient2" of Netflix' concurrency-limits.
"""

from __future__ import annotations

from dataclasses import dataclass, field

INITIAL_LIMIT = 8.0
"""The limit of a namespace without measurements."""

MIN_LIMIT = 4.0
"""The lower bound, however slow responses are: `STEEPEST * LEAST + QUEUED` is `MIN_LIMIT` again."""

MIN_GRADIENT = 0.5
"""The lower bound of the gradient: a single response may be very late by chance."""

TOLERATED_RATIO = 2.0
"""Latencies up to this multiple of the shortest one don't count as queueing."""

QUEUE_ALLOWANCE = 2.0
"""Requests that may queue at the API server, so that it is never idle."""

SMOOTHING = 0.2
"""The weight of one response against previous ones."""

LATENCY_WINDOW_SECONDS = 300.0
"""The shortest latency expires after this time or twice of it: an API server may become slower permanently."""


@dataclass
class ShortestLatency:
    """The shortest latency of one kind of request, in the last five to ten minutes."""

    since: float
    now: float
    before: float

    def take(self, seconds: float, at: float) -> float:
        """Record a response with this latency at time `at`; return the shortest latency."""
        if at - self.since > LATENCY_WINDOW_SECONDS:
            self.before = self.now if at - self.since <= 2 * LATENCY_WINDOW_SECONDS else seconds
            self.since, self.now = at, seconds
        self.now = min(self.now, seconds)
        return min(self.now, self.before)


@dataclass
class AdaptiveLimit:
    """A limit for each namespace, never more than `most`. Times are in seconds, of any one clock."""

    most: int
    _shortest: dict[str, ShortestLatency] = field(default_factory=dict)
    _limits: dict[str, float] = field(default_factory=dict)

    def of(self, namespace: str) -> int:
        """Return how many concurrent requests the namespace may have now."""
        return int(self._limits.get(namespace, INITIAL_LIMIT))

    def record_latency(self, namespace: str, kind: str, seconds: float, at: float) -> None:
        """Record a request's latency, which is compared to requests of the same kind."""
        shortest = self._shortest.setdefault(kind, ShortestLatency(at, seconds, seconds)).take(seconds, at)
        # A latency of zero can't be compared.
        gradient = max(MIN_GRADIENT, min(1.0, TOLERATED_RATIO * shortest / seconds)) if seconds > 0 else 1.0
        self._adjust(namespace, gradient)

    def record_failure(self, namespace: str) -> None:
        """Record a request without a response, or with "too many requests"."""
        self._adjust(namespace, MIN_GRADIENT)

    def forget(self, namespace: str) -> None:
        """Drop an idle namespace: its limit would soon be outdated."""
        self._limits.pop(namespace, None)

    def _adjust(self, namespace: str, gradient: float) -> None:
        limit = self._limits.get(namespace, INITIAL_LIMIT)
        wanted = limit * gradient + QUEUE_ALLOWANCE
        self._limits[namespace] = max(MIN_LIMIT, min(self.most, limit + SMOOTHING * (wanted - limit)))
