"""How many requests of one namespace may be in flight, from how long their answers take. No I/O, no clock.

An API server that is busy answers later, not less: beyond what it can work on, more requests at once only make all of
them wait, those of other namespaces and of other clients too. So the limit falls while answers take much longer than
the shortest lately, and grows while they don't, as TCP Vegas does with its window. (The formula is "Gradient2" of
Netflix' concurrency-limits.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

FIRST = 8.0
"""For a namespace of which nothing is known."""

LEAST = 4.0
"""What is left however slow the answers are: `STEEPEST * LEAST + QUEUED` is `LEAST` again."""

STEEPEST = 0.5
"""Chance makes one answer very late: no single one counts for more."""

TOLERATED = 2.0
"""So many times the shortest answer's time is taken for chance, not for a queue."""

QUEUED = 2.0
"""So many requests may wait at the API server: it is never idle for want of the next one."""

WEIGHT = 0.2
"""Of one answer against those before."""

FORGET_SECONDS = 300.0
"""The shortest answer counts for once or twice as long; an API server may become slower for good."""


@dataclass
class ShortestAnswer:
    """The time of the shortest answer to one kind of request, in the last five to ten minutes."""

    since: float
    now: float
    before: float

    def take(self, seconds: float, at: float) -> float:
        """Count an answer that came `at` this time. The shortest, with it."""
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
        """How many of its requests may be in flight now."""
        return int(self._limits.get(namespace, FIRST))

    def answered(self, namespace: str, kind: str, seconds: float, at: float) -> None:
        """A request of this kind took so long. Only those of one kind are compared."""
        shortest = self._shortest.setdefault(kind, ShortestAnswer(at, seconds, seconds)).take(seconds, at)
        # An answer in no time at all says nothing of the others.
        gradient = max(STEEPEST, min(1.0, TOLERATED * shortest / seconds)) if seconds > 0 else 1.0
        self._move(namespace, gradient)

    def unanswered(self, namespace: str) -> None:
        """A request found no answer, or that it was one too many."""
        self._move(namespace, STEEPEST)

    def forget(self, namespace: str) -> None:
        """None of its requests is in flight, and none waits: what is known of it is as good as nothing."""
        self._limits.pop(namespace, None)

    def _move(self, namespace: str, gradient: float) -> None:
        limit = self._limits.get(namespace, FIRST)
        wanted = limit * gradient + QUEUED
        self._limits[namespace] = max(LEAST, min(self.most, limit + WEIGHT * (wanted - limit)))
