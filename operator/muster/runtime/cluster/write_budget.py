"""How many status writes a second all jobs together may cause. Progress waits for its turn, news doesn't."""

PER_SECOND = 50.0
"""Writes of mere progress, over all jobs."""

MAX_DEBT_SECONDS = 5.0
"""A storm of news makes progress wait, but not longer than this for each of its writes."""


class WriteBudget:
    """Hands out turns, one after the other. Times are in seconds of any one clock."""

    def __init__(self, per_second: float = PER_SECOND) -> None:
        self._interval = 1.0 / per_second
        self._next = float("-inf")

    def reserve(self, now: float) -> float:
        """When the one who asks at `now` may write; the turn is theirs."""
        turn = max(self._next, now)
        self._next = turn + self._interval
        return turn

    def spend(self, now: float) -> None:
        """Somebody writes at `now` without waiting: those who wait do so a little longer."""
        self._next = min(max(self._next, now) + self._interval, now + MAX_DEBT_SECONDS)
