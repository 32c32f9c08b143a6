"""The end of a job without the details that differ between runs, and states that a job must never have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from cluster.crashes.world import ObservedJob

FINAL = ("Complete", "Failed")
TURNS = ("Started", "Suspended", "Resumed", "Completed", "Failed")
"""The regular events of a job. The events about its pods differ between runs."""


@dataclass(frozen=True)
class Ending:
    """The end of a job as a user sees it. `starts` has each rank's number of starts."""

    exists: bool
    phase: str
    attempt: int
    conditions: frozenset[tuple[str, str, str]]
    ranks: frozenset[tuple[str, str]]
    failures: tuple[tuple[Any, ...], ...]
    events: frozenset[tuple[tuple[str, str], int]]
    there: frozenset[str]
    starts: frozenset[tuple[int, int]]
    restarts: tuple[tuple[Any, ...], ...]

    def differs(self, other: Ending) -> str:
        """Return the differences to `other`."""
        pairs = ((name, getattr(self, name), getattr(other, name)) for name in self.__dataclass_fields__)
        return "; ".join(
            f"{name}: {_shown(mine)}, not {_shown(theirs)}" for name, mine, theirs in pairs if mine != theirs
        )


def ending(seen: ObservedJob, starts: Counter[int]) -> Ending:
    """Return the job's current state as an end. The last status of a deleted job is ignored."""
    status = seen.status if seen.exists else {}
    ranks = status.get("ranks", {})
    return Ending(
        exists=seen.exists,
        phase=status.get("phase", ""),
        attempt=status.get("attempt", 0),
        conditions=frozenset((one["type"], one["status"], one["reason"]) for one in status.get("conditions", ())),
        ranks=frozenset((one["state"], one["ranks"]) for one in ranks.get("byState", ())),
        # The operator reads a rank's activity once, when it stops the rank, and stores it in memory only: a killed
        # operator loses it.
        failures=tuple(_failure(one) for one in ranks.get("details", ()) if one["reason"] != "StoppedByMuster"),
        events=frozenset(Counter(each for each in seen.events if each[1] in TURNS).items()),
        there=frozenset(seen.there),
        starts=frozenset(starts.items()),
        restarts=tuple(_failure(one) for one in status.get("restarts", {}).get("history", ())),
    )


def wrongs(seen: ObservedJob, starts: Counter[int]) -> list[str]:
    """Return violations of rules that always hold, also if the operator is killed.

    A node has one pod at a time and, unless it is deleted before it starts, one for each attempt. A pod may have the
    name of a deleted one: muster identifies pods by uid.
    """
    attempt = max((status.get("attempt", 0) for status in seen.statuses), default=0)
    more = [
        f"node {node} had {len(uids)} pods in {attempt} attempts"
        for node, uids in seen.pods.items()
        if len(uids) > max(attempt, 1)
    ]
    again = [
        f"rank {rank} began {count} times in {attempt} attempts" for rank, count in starts.items() if count > attempt
    ]
    return [*seen.twins, *more, *again, *request_failures(seen.statuses)]


def request_failures(statuses: Sequence[dict[str, Any]]) -> list[str]:
    """Statuses that lost values of the previous status."""
    result = []
    for before, after in pairwise(statuses):
        if after.get("attempt", 0) < before.get("attempt", 0):
            result.append(f"attempt {before['attempt']} became {after.get('attempt')}")
        if before.get("observedGeneration", 0) > after.get("observedGeneration", 0):
            result.append("observedGeneration fell")
        result += [f"{kind} was taken back" for kind in FINAL if _is_true(before, kind) and not _is_true(after, kind)]
        same_start = before.get("attempt") == after.get("attempt")
        began, begins = before.get("startTime"), after.get("startTime")
        if same_start and began is not None and begins is not None and began != begins:
            result.append(f"startTime {began} became {begins}")
        # Running ranks become pending only by a suspension.
        if (before.get("phase"), after.get("phase")) in _BACKWARDS:
            result.append(f"{before['phase']} became {after['phase']}")
    return result


_BACKWARDS = {("Running", "Starting"), ("Running", "Pending"), ("Stopping", "Running"), ("Stopping", "Starting")}


def _is_true(status: dict[str, Any], kind: str) -> bool:
    return any(one["type"] == kind and one["status"] == "True" for one in status.get("conditions", ()))


def _failure(detail: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(detail.get(key) for key in ("rank", "state", "exitCode", "signal", "reason"))


def _shown(value: Any) -> str:
    return str(sorted(value)) if isinstance(value, frozenset) else str(value)
