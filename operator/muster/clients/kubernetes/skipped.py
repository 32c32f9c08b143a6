"""Log objects that can't be parsed: each object only once, and at a limited rate."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

MAX_REMEMBERED = 1000
"""The maximum number of remembered objects. Older objects may be logged again."""

MAX_LINES = 20
"""The maximum number of log lines in `WINDOW_SECONDS`, because users control the number of such objects."""

WINDOW_SECONDS = 60.0

_log = logging.getLogger(__name__)


@dataclass
class SkippedLog:
    """Logs skipped objects. `clock` returns seconds."""

    clock: Callable[[], float]
    _logged_keys: OrderedDict[str, None] = field(default_factory=OrderedDict)
    _window_start: float = float("-inf")
    _lines: int = 0
    _unlogged_count: int = 0

    def log(self, name: str, uid: str, reason: str) -> None:
        """Log a skipped object with its name, as in kubectl. `uid` is "" if unknown."""
        key = uid or reason
        if key in self._logged_keys:
            return
        self._logged_keys[key] = None
        if len(self._logged_keys) > MAX_REMEMBERED:
            self._logged_keys.popitem(last=False)
        now = self.clock()
        if now - self._window_start >= WINDOW_SECONDS:
            if self._unlogged_count:
                _log.warning("muster skipped %d more objects that it can't parse", self._unlogged_count)
            self._window_start, self._lines, self._unlogged_count = now, 0, 0
        if self._lines >= MAX_LINES:
            self._unlogged_count += 1
            return
        self._lines += 1
        _log.warning("muster skips %s: %s", name, reason)
