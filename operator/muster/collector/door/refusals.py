"""Count refused requests and connections by reason, and log them at a bounded rate."""

from collections import Counter
from dataclasses import dataclass, field

from muster.collector.door.refusal import Reason

MAX_SOURCES = 1_000
"""Pods and addresses that are counted separately between two log lines; later ones count as "others"."""

LOGGED_SOURCES = 3
"""The number of sources in a log line: those with the most refusals."""

OTHERS = "others"


@dataclass
class Refusals:
    """`counts` has the total since the process started, by reason."""

    counts: Counter[Reason] = field(default_factory=Counter)
    _recent: Counter[Reason] = field(default_factory=Counter)
    _sources: Counter[str] = field(default_factory=Counter)

    def count(self, reason: Reason, source: str, namespace: str = "") -> None:
        """Count a refusal, of a pod (its name and namespace) or an address."""
        self.counts[reason] += 1
        self._recent[reason] += 1
        if namespace:
            source = f"{namespace}/{source}"
        is_known = source in self._sources or len(self._sources) < MAX_SOURCES
        self._sources[source if is_known else OTHERS] += 1

    def tell(self) -> str | None:
        """Summarize the refusals since the last call in one line; None if there were none."""
        if not self._recent:
            return None
        reasons = ", ".join(f"{reason} {number}" for reason, number in self._recent.most_common())
        sources = ", ".join(f"{source} {number}" for source, number in self._sources.most_common(LOGGED_SOURCES))
        self._recent.clear()
        self._sources.clear()
        return f"{reasons}; most from {sources}"
