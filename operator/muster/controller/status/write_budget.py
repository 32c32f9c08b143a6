"""How many status writes a second all jobs together may cause. Progress waits for its turn, news doesn't."""

PER_SECOND = 50.0
"""Writes of mere progress, over all jobs: the namespaces that have some to write share it evenly."""

MAX_DEBT_SECONDS = 5.0
"""A storm of news makes progress of its namespace wait, but not longer than this for each of its writes."""


class WriteBudget:
    """Hands out turns, to each namespace one after the other. Times are in seconds of any one clock."""

    def __init__(self, per_second: float = PER_SECOND) -> None:
        self._interval = 1.0 / per_second
        self._next: dict[str, float] = {}

    def reserve(self, now: float, namespace: str) -> float:
        """When a job of the namespace that asks at `now` may write; the turn is its own."""
        turn, after = self._place(now, namespace)
        self._next[namespace] = after
        return turn

    def spend(self, now: float, namespace: str) -> None:
        """One of its jobs writes at `now` without waiting: the others that wait do so a little longer."""
        _, after = self._place(now, namespace)
        self._next[namespace] = min(after, now + MAX_DEBT_SECONDS)

    def _place(self, now: float, namespace: str) -> tuple[float, float]:
        """The namespace's next turn, and when the one after it is."""
        self._next = {name: at for name, at in self._next.items() if at > now}
        turn = self._next.get(namespace, now)
        return turn, turn + self._interval * len({*self._next, namespace})
