"""Count requests by their kind and their result, for metrics."""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

NO_RESPONSE = "none"
"""The code of a request without a response."""

_CODES = range(100, 600)


@dataclass
class RequestCounter:
    """Counts requests since the process started; any thread may call it.

    A key has three words: what was requested of what, and the response's code. The callers use a bounded number of
    words. A response may have any code, so codes outside HTTP's range count as none.
    """

    _counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, first: str, second: str, status: int) -> None:
        """Count a request. `status` is the response's HTTP status, and 0 without a response."""
        code = str(status) if status in _CODES else NO_RESPONSE
        with self._lock:
            self._counts[first, second, code] += 1

    def counts(self) -> Mapping[tuple[str, str, str], int]:
        """Return the numbers so far."""
        with self._lock:
            return dict(self._counts)
