"""Count refused requests and connections by reason, and log them at a bounded rate."""

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass, field

from muster.collector.server.refusal import RefusalReason

MAX_SOURCES = 1_000
"""The maximum number of pods and addresses that are counted separately between two log lines."""

LOGGED_SOURCES = 3
"""The number of sources in a log line, which are those with the most refusals."""

LOG_SECONDS = 60.0
"""The interval of log lines."""

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

    def summarize(self) -> str | None:
        """Return one line about the refusals since the last call; None without refusals."""
        if not self._recent:
            return None
        reasons = ", ".join(f"{reason} {number}" for reason, number in self._recent.most_common())
        sources = ", ".join(f"{source} {number}" for source, number in self._sources.most_common(LOGGED_SOURCES))
        self._recent.clear()
        self._sources.clear()
        return f"{reasons}; most from {sources}"


async def log_refusals(refusals: RefusalCounter, seconds: float = LOG_SECONDS) -> None:
    """Log a line in each interval that has refusals, until cancelled."""
    while True:
        await asyncio.sleep(seconds)
        line = refusals.summarize()
        if line is not None:
            _log.warning("the collector refused requests in the last %.0f s: %s", seconds, line)
