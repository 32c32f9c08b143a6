"""Limit the concurrent requests of each namespace by the latency of responses. No I/O, no clock.

A busy API server answers later, not less: beyond its capacity, more concurrent requests only make all of them wait,
including those of other namespaces and clients. So the limit falls while responses take much longer than the shortest
recent one, and grows otherwise, like the window of TCP Vegas. (The formula is "Gradient2" of Netflix'
concurrency-limits.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

FIRST = 8.0
"""The limit of a namespace without measurements."""

LEAST = 4.0
"""The lower bound, however slow responses are: `STEEPEST * LEAST + QUEUED` is `LEAST` again."""

STEEPEST = 0.5
"""A single response may be very late by chance: limit its effect."""

TOLERATED = 2.0
"""Latencies up to this multiple of the shortest one don't count as queueing."""

QUEUED = 2.0
"""Requests that may queue at the API server, so that it is never idle."""

WEIGHT = 0.2
"""The weight of one response against previous ones."""

FORGET_SECONDS = 300.0
"""The shortest response counts for once or twice this time: an API server may become slower permanently."""


@dataclass
class ShortestAnswer:
    """The shortest latency of one kind of request, in the last five to ten minutes."""

    since: float
    now: float
    before: float

    def take(self, seconds: float, at: float) -> float:
        """Record a response with this latency at time `at`; return the shortest latency."""
        if at - self.since > FORGET_SECONDS:
            self.before = self.now if at - self.since <= 2 * FORGET_SECONDS else seconds
            self.since, self.now = at, seconds
        self.now = min(self.now, seconds)
        return min(self.now, self.before)


@dataclass
class AdaptiveLimit:
    """A limit for each namespace, never more than `most`. Times are in seconds, of any one clock."""

    most: int
    _shortest: dict[str, ShortestAnswer] = field(default_factory=dict)
    _limits: dict[str, float] = field(default_factory=dict)

    def of(self, namespace: str) -> int:
        """How many concurrent requests the namespace may have now."""
        return int(self._limits.get(namespace, FIRST))

    def answered(self, namespace: str, kind: str, seconds: float, at: float) -> None:
        """Record a request's latency. Only requests of one kind are compared."""
        shortest = self._shortest.setdefault(kind, ShortestAnswer(at, seconds, seconds)).take(seconds, at)
        # A latency of zero can't be compared.
        gradient = max(STEEPEST, min(1.0, TOLERATED * shortest / seconds)) if seconds > 0 else 1.0
        self._move(namespace, gradient)

    def unanswered(self, namespace: str) -> None:
        """Record a request without a response, or with "too many requests"."""
        self._move(namespace, STEEPEST)

    def forget(self, namespace: str) -> None:
        """Drop an idle namespace: its limit would soon be outdated."""
        self._limits.pop(namespace, None)

    def _move(self, namespace: str, gradient: float) -> None:
        limit = self._limits.get(namespace, FIRST)
        wanted = limit * gradient + QUEUED
        self._limits[namespace] = max(LEAST, min(self.most, limit + WEIGHT * (wanted - limit)))
