"""Detects that the collector does not answer, and decides when to log it. Pure."""

from __future__ import annotations

from typing import Optional

LOG_AFTER_SECONDS = 5.0
"""Don't log shorter outages: the operator may restart, or a request may reach a replica that isn't the leader."""


class Outage:
    """Detects outages of the collector. Times are on the node's monotonic clock."""

    def __init__(self, now: float) -> None:
        self.last_answer_at = now
        self._failing_since: Optional[float] = None
        self._is_logged = False

    def record_failure(self, reason: str, now: float) -> Optional[str]:
        """Record that a report could not be delivered. Returns a line for the log, once per outage."""
        if self._failing_since is None:
            self._failing_since = now
        if self._is_logged or now - self._failing_since < LOG_AFTER_SECONDS:
            return None
        self._is_logged = True
        return f"reports don't reach the collector: {reason}; retrying, the ranks continue"

    def record_answer(self, now: float) -> Optional[str]:
        """Record that a report was delivered. Returns a line for the log if the outage was logged."""
        was_logged, since = self._is_logged, self._failing_since
        self.last_answer_at, self._failing_since, self._is_logged = now, None, False
        return (
            f"reports reach the collector again, after {now - since:.0f} s"
            if was_logged and since is not None
            else None
        )
