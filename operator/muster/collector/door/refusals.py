"""Counts the requests and connections that changed nothing, by reason, and reports them at a bounded rate."""

from collections import Counter
from dataclasses import dataclass, field

from muster.collector.door.refusal import Reason

MAX_SOURCES = 1_000
"""Pods and addresses that are counted one by one between two tellings; later ones count as "others"."""

TOLD_SOURCES = 3
"""Of those with the most, in a line of the log."""

OTHERS = "others"


@dataclass
class Refusals:
    """`counts` are those since the process began, by reason."""

    counts: Counter[Reason] = field(default_factory=Counter)
    _recent: Counter[Reason] = field(default_factory=Counter)
    _sources: Counter[str] = field(default_factory=Counter)

    def count(self, reason: Reason, source: str, namespace: str = "") -> None:
        """One more, of a pod (its name and namespace) or of an address."""
        self.counts[reason] += 1
        self._recent[reason] += 1
        if namespace:
            source = f"{namespace}/{source}"
        is_known = source in self._sources or len(self._sources) < MAX_SOURCES
        self._sources[source if is_known else OTHERS] += 1

    def tell(self) -> str | None:
        """What was refused since the last time, in one line; None when nothing was."""
        if not self._recent:
            return None
        reasons = ", ".join(f"{reason} {number}" for reason, number in self._recent.most_common())
        sources = ", ".join(f"{source} {number}" for source, number in self._sources.most_common(TOLD_SOURCES))
        self._recent.clear()
        self._sources.clear()
        return f"{reasons}; most from {sources}"
