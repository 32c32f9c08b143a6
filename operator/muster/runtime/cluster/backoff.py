"""How long to wait after something went wrong, before it is tried again."""

from collections.abc import Callable

FIRST_SECONDS = 0.2
MAX_SECONDS = 10.0

MAX_BUG_SECONDS = 60.0
"""What failed by a mistake in muster rarely gets better by itself."""

_FACTOR = 2.0
_JITTER = 0.5
"""The part of a pause that chance decides: those who failed together don't come back together."""


class Backoff:
    """Pauses that grow with each failure in a row. `chance` gives numbers from 0 to 1."""

    def __init__(self, chance: Callable[[], float]) -> None:
        self._chance = chance
        self._failures = 0

    def success(self) -> None:
        """It went well: the next failure is a first one again."""
        self._failures = 0

    def failure(self, longest: float, asked: float | None = None) -> float:
        """Seconds to wait, at most `longest` unless the other side `asked` for more."""
        # 2 ** 20 is above every `longest`, and bounded.
        pause = min(FIRST_SECONDS * _FACTOR ** min(self._failures, 20), longest)
        self._failures += 1
        spread = pause * (1.0 - _JITTER * self._chance())
        # Who asks for a pause gets all of it, and not everybody at its very end.
        return spread if asked is None else max(spread, asked * (1.0 + _JITTER / 5 * self._chance()))
