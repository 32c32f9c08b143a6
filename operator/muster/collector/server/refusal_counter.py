"""Count refused requests and connections by reason, and log them at a bounded rate."""

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass, field

from muster.collector.server.refusal import RefusalReason

MAX_SOURCES = 1_000
"""The maximum number of pods and addresses that are counted separately between two log lines."""

MAX_LOGGED_SOURCES = 3
"""The maximum number of sources in a log line: those with the most refusals."""

LOG_INTERVAL_SECONDS = 60.0
OTHERS = "others"

_log = logging.getLogger(__name__)


@dataclass
class RefusalCounter:
    """Counts refusals. `counts` has their number by reason since the process started."""

    counts: Counter[RefusalReason] = field(default_factory=Counter)
    _recent: Counter[RefusalReason] = field(default_factory=Counter)
    _sources: Counter[str] = field(default_factory=Counter)

    def count(self, reason: RefusalReason, source: str, namespace: str = "") -> None:
        """Count a refusal. `source` is a pod's name or an address."""
        self.counts[reason] += 1
        self._recent[reason] += 1
        if namespace:
            source = f"{namespace}/{source}"
        is_known = source in self._sources or len(self._sources) < MAX_SOURCES
        self._sources[source if is_known else OTHERS] += 1

    def take_summary(self) -> str | None:
        """Return one line about the refusals since the last call; None without refusals. The next call starts anew."""
        if not self._recent:
            return None
        reasons = ", ".join(f"{reason} {number}" for reason, number in self._recent.most_common())
        sources = ", ".join(f"{source} {number}" for source, number in self._sources.most_common(MAX_LOGGED_SOURCES))
        self._recent.clear()
        self._sources.clear()
        return f"{reasons}; most from {sources}"


async def log_refusals(refusals: RefusalCounter, interval: float = LOG_INTERVAL_SECONDS) -> None:
    """Log a line in each interval that has refusals, until cancelled."""
    while True:
        await asyncio.sleep(interval)
        line = refusals.take_summary()
        if line is not None:
            _log.warning("the collector refused requests in the last %.0f s: %s", interval, line)
