"""How long the steps of each namespace wait for other steps of the same namespace. Pure."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

FORGET_SECONDS = 60.0
"""A namespace without a step for this long is forgotten, so that the memory doesn't grow with deleted namespaces."""

_WEIGHT = 0.05


@dataclass(frozen=True)
class _MeanWait:
    seconds: float
    granted_at: float


@dataclass
class MeanWaits:
    """The mean wait of each namespace's recent steps.

    The mean excludes the turns of other namespaces, because their load must not increase the delay of a job.
    """

    _means: OrderedDict[str, _MeanWait] = field(default_factory=OrderedDict)  # the latest one is the last

    def __len__(self) -> int:
        return len(self._means)

    def get(self, namespace: str) -> float:
        """Return the mean wait in seconds."""
        mean = self._means.get(namespace)
        return 0.0 if mean is None else mean.seconds

    def add(self, namespace: str, acquired_at: float, now: float) -> None:
        """Add a step that has waited since `acquired_at` and runs `now`. Forget the namespaces without recent steps."""
        mean = self._means.get(namespace, _MeanWait(0.0, acquired_at))
        # After the previous step of its namespace, this step was the next one, and waited only for other namespaces.
        own_seconds = max(0.0, mean.granted_at - acquired_at)
        self._means[namespace] = _MeanWait(mean.seconds + _WEIGHT * (own_seconds - mean.seconds), now)
        self._means.move_to_end(namespace)
        while next(iter(self._means.values())).granted_at < now - FORGET_SECONDS:
            self._means.popitem(last=False)
