"""When the collector was heard last, and when its silence is worth a line in the log. Pure."""

from __future__ import annotations

from typing import Optional

TELL_SECONDS = 5.0
"""A restarted operator, or a question that met one that doesn't lead, is nobody's problem before it has lasted."""


class Outage:
    """Times are the node's monotonic clock."""

    def __init__(self, now: float) -> None:
        self.heard_at = now
        self._failing_since: Optional[float] = None
        self._told = False

    def failed(self, why: str, now: float) -> Optional[str]:
        """A report could not be delivered; what to say about it, once an outage."""
        if self._failing_since is None:
            self._failing_since = now
        if self._told or now - self._failing_since < TELL_SECONDS:
            return None
        self._told = True
        return f"nobody takes this node's reports: {why}; trying again, the ranks go on"

    def answered(self, now: float) -> Optional[str]:
        """A report was delivered; what to say about it when an outage was told."""
        value, since = self._told, self._failing_since
        self.heard_at, self._failing_since, self._told = now, None, False
        return f"reports are taken again, after {now - since:.0f} s" if value and since is not None else None
