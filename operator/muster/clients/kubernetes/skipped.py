"""What is logged of objects that can't be read: each once, and no more of them than a person reads."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

MAX_REMEMBERED = 1000
"""Objects that were logged and aren't again; of more the oldest are forgotten, and may be logged once more."""

MAX_LINES = 20
"""In `WINDOW_SECONDS`: a tenant decides how many such objects there are."""

WINDOW_SECONDS = 60.0

_log = logging.getLogger(__name__)


@dataclass
class SkippedLog:
    """`clock` gives seconds."""

    clock: Callable[[], float]
    _logged: OrderedDict[str, None] = field(default_factory=OrderedDict)
    _since: float = float("-inf")
    _lines: int = 0
    _silent: int = 0

    def tell(self, what: str, uid: str, why: str) -> None:
        """`what` names the object as kubectl does, `why` says what is wrong with it; `uid` "" where it isn't known."""
        key = uid or why
        if key in self._logged:
            return
        self._logged[key] = None
        if len(self._logged) > MAX_REMEMBERED:
            self._logged.popitem(last=False)
        now = self.clock()
        if now - self._since >= WINDOW_SECONDS:
            if self._silent:
                _log.warning("%d more objects were skipped that can't be read", self._silent)
            self._since, self._lines, self._silent = now, 0, 0
        if self._lines >= MAX_LINES:
            self._silent += 1
            return
        self._lines += 1
        _log.warning("%s is skipped: %s", what, why)
