"""Log objects that can't be parsed: each only once, and at a limited rate."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

MAX_REMEMBERED = 1000
"""Maximum number of remembered objects; older ones may be logged again."""

MAX_LINES = 20
"""Lines per `WINDOW_SECONDS`: users control the number of such objects."""

WINDOW_SECONDS = 60.0

_log = logging.getLogger(__name__)


@dataclass
class SkippedLog:
    """`clock` returns seconds."""

    clock: Callable[[], float]
    _logged: OrderedDict[str, None] = field(default_factory=OrderedDict)
    _since: float = float("-inf")
    _lines: int = 0
    _silent: int = 0

    def log(self, what: str, uid: str, why: str) -> None:
        """Log a skipped object: `what` is its name as in kubectl, `why` the problem; `uid` is "" if unknown."""
        key = uid or why
        if key in self._logged:
            return
        self._logged[key] = None
        if len(self._logged) > MAX_REMEMBERED:
            self._logged.popitem(last=False)
        now = self.clock()
        if now - self._since >= WINDOW_SECONDS:
            if self._silent:
                _log.warning("muster skipped %d more objects that it can't parse", self._silent)
            self._since, self._lines, self._silent = now, 0, 0
        if self._lines >= MAX_LINES:
            self._silent += 1
            return
        self._lines += 1
        _log.warning("muster skips %s: %s", what, why)
