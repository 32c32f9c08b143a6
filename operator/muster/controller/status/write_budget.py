"""Limit the rate of all jobs' status writes. Progress waits for a slot; significant changes don't."""

PER_SECOND = 50.0
"""The rate of progress writes. Namespaces share it equally."""

MAX_DEBT_SECONDS = 5.0
"""The maximum delay of a namespace's progress writes by its immediate writes."""


class WriteBudget:
    """Assigns slots to namespaces in turn. All times are seconds of the same clock."""

    def __init__(self, per_second: float = PER_SECOND) -> None:
        self._interval = 1.0 / per_second
        self._next_slot_at: dict[str, float] = {}

    def reserve(self, now: float, namespace: str) -> float:
        """Reserve the next slot for a job of the namespace, and return its time."""
        slot, following_slot = self._next_slots(now, namespace)
        self._next_slot_at[namespace] = following_slot
        return slot

    def spend(self, now: float, namespace: str) -> None:
        """Count a write at `now` that didn't wait for a slot. It takes the namespace's next slot."""
        _, following_slot = self._next_slots(now, namespace)
        self._next_slot_at[namespace] = min(following_slot, now + MAX_DEBT_SECONDS)

    def _next_slots(self, now: float, namespace: str) -> tuple[float, float]:
        """Return the times of the namespace's next slot and of the slot after it."""
        self._next_slot_at = {name: at for name, at in self._next_slot_at.items() if at > now}
        slot = self._next_slot_at.get(namespace, now)
        return slot, slot + self._interval * len({*self._next_slot_at, namespace})
