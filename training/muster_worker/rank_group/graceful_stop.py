"""Ends the ranks of a node at the same call of `muster_worker.stopping` as the ranks of all other nodes.

1. The agent writes to the stop file that its ranks will be stopped. From now on each rank waits in its next call, so no
   rank gets further than that call.
2. The agent reports the highest number of these calls, `stop_call` of the report.
3. The operator sends the highest `stop_call` of all nodes to all agents. This number depends only on the reports, so
   two leaders choose the same number.
4. The agent writes this number to the stop file. Ranks that wait in an earlier call continue up to the call with this
   number.
"""

from __future__ import annotations

import time
from typing import Iterable, Optional

from muster_worker.contract.wire import MAX_INT
from muster_worker.rank import stop_file
from muster_worker.rank_group import progress

DECISION_SECONDS = 5.0
"""Time limit for the operator's decision, at most a third of the grace period. Then the node decides by itself."""

DECISION_SHARE = 1 / 3

SIGTERM_SECONDS = 2.0
"""The time from SIGTERM to SIGKILL, at most a quarter of the grace period."""

SIGTERM_SHARE = 1 / 4

SETTLE_SECONDS = 0.002
"""After this time the agent sees the count of each call that has not yet seen the stop file's new content."""

MARGIN_SECONDS = 1.0
"""A rank waits this much longer than the agent. Then `stopping` returns True without a decision."""


class GracefulStop:
    """The stop of a node's ranks in one attempt, at call `stop_call_number`. The number is final if `is_decided`."""

    def __init__(self, run_dir: str) -> None:
        """Create the stop file. Raises `OSError`."""
        self._words, self._times = stop_file.create(run_dir)
        self.stop_call_number = 0
        self.is_decided = False
        self.sigterm_at: Optional[float] = None  # when to send SIGTERM to the remaining ranks
        self._decide_at = 0.0

    def begin(self, progress_files: Iterable[str], grace: float) -> bool:
        """Make ranks wait in their next call of `stopping`. Returns False if no rank has called it yet."""
        paths = tuple(progress_files)
        if grace <= 0 or not _count_calls(paths):
            return False
        now = time.monotonic()
        self._decide_at = now + min(DECISION_SECONDS, grace * DECISION_SHARE)
        self.sigterm_at = _compute_sigterm_time(now, grace)
        self._times[stop_file.WORD_WAIT_UNTIL] = self._decide_at + MARGIN_SECONDS
        # A rank's count may become visible only after the rank has read the stop file.
        time.sleep(SETTLE_SECONDS)
        self.stop_call_number = _count_calls(paths) + 1
        return True

    def shorten(self, grace: float) -> None:
        """Send SIGTERM earlier, because the ranks have only `grace` seconds from now on."""
        if self.sigterm_at is not None:
            self.sigterm_at = min(self.sigterm_at, _compute_sigterm_time(time.monotonic(), grace))

    def decide(self, stop_call_number: int) -> bool:
        """Let the ranks stop at this call. Only the first decision counts. Returns whether this was the first."""
        if not self.stop_call_number or self.is_decided:
            return False
        self.stop_call_number, self.is_decided = stop_call_number, True
        self._words[stop_file.WORD_STOP_CALL] = stop_call_number
        return True

    @property
    def is_overdue(self) -> bool:
        """Whether the node has waited too long for the operator's decision."""
        return self.stop_call_number > 0 and not self.is_decided and time.monotonic() >= self._decide_at

    @property
    def is_sigterm_due(self) -> bool:
        """Whether the ranks have to get SIGTERM now."""
        return self.sigterm_at is not None and time.monotonic() >= self.sigterm_at

    @property
    def next_poll_at(self) -> Optional[float]:
        """The time at which the decision is overdue or SIGTERM is due; None: never."""
        if self.stop_call_number and not self.is_decided:
            return self._decide_at if self.sigterm_at is None else min(self._decide_at, self.sigterm_at)
        return self.sigterm_at


def _compute_sigterm_time(now: float, grace: float) -> float:
    return now + grace - min(SIGTERM_SECONDS, grace * SIGTERM_SHARE)


def _count_calls(paths: Iterable[str]) -> int:
    """Return the number of calls of the rank with the most calls."""
    # A user's process wrote the number. Limit it, because it has to fit into a report.
    return min(max((progress.read(path).stopping_calls for path in paths), default=0), MAX_INT - 1)
