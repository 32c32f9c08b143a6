"""Finds ranks of this node that complete no more steps, writes their stacks to the log, and reports their activities.

The agent needs no command for this, so it also works while no operator runs.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Tuple

from muster_worker.agent.log import Log
from muster_worker.agent.reports import Observation
from muster_worker.agent.state import ActivityChanged, Event
from muster_worker.contract.collectives import GroupCollective
from muster_worker.machine import processes
from muster_worker.rank_group import activity, collective_dump, stack_dump
from muster_worker.rank_group.rank_links import RankLink

MAX_CAPTURES = 8
"""Maximum number of times per attempt that the agent writes stacks to the log."""

MAX_LINES = 8000
"""Maximum number of stack lines in one capture, for all ranks of the node together. Each of 128 ranks, the most that a
node may have, can write 62 lines, so that its main thread is in the log.
"""

MAX_LINE_CHARS = 300

STACK_PREFIX = "[muster] rank {rank} | "
"""Start of each line of a stack. `muster stacks` searches for it."""

EARLY_FACTOR = 0.9
"""The agent acts after this fraction of the timeout, so that its reports have the activities at the timeout."""


class HangDetector:
    """Watches the ranks of one attempt.

    A rank hangs if it has completed a step, has completed no other for EARLY_FACTOR * `timeout` seconds, and is not in
    a `muster_worker.phase`.
    """

    def __init__(self, timeout: float, log: Log) -> None:
        self._early_timeout = EARLY_FACTOR * timeout
        self._log = log
        self._hung_ranks: Dict[int, float] = {}  # the seconds since their last steps
        self._captures = 0

    def check(self, observations: Mapping[int, Observation], links: Mapping[int, RankLink], now: float) -> List[Event]:
        """Return the activities of ranks that newly hang, and clear those of ranks that complete steps again."""
        idle_seconds = _compute_idle_seconds(observations, links, now)
        is_hanging = max(idle_seconds.values(), default=0.0) >= self._early_timeout
        # Include peers that completed their last steps later, but have been idle for half of this time.
        hung_ranks = {
            rank: seconds for rank, seconds in idle_seconds.items() if is_hanging and seconds >= self._early_timeout / 2
        }
        events: List[Event] = [
            ActivityChanged(rank, None) for rank in self._hung_ranks if rank in links and rank not in hung_ranks
        ]
        new_links = {rank: links[rank] for rank in hung_ranks if rank not in self._hung_ranks}
        self._hung_ranks = hung_ranks
        return events + (self._capture(new_links) if new_links else [])

    def _capture(self, links: Mapping[int, RankLink]) -> List[Event]:
        dumps = stack_dump.capture_link_dumps(links, stack_dump.HANG_SECONDS)
        collectives = collective_dump.read_collectives(links)
        is_logged = self._captures < MAX_CAPTURES
        self._captures += 1
        events: List[Event] = []
        for rank, link in links.items():
            state = None if link.pid is None else processes.describe_stop(link.pid)
            rank_activity = state or activity.describe_dump(dumps.get(rank, ""))
            groups = collectives.get(rank, ())
            if rank_activity is not None or groups:
                events.append(ActivityChanged(rank, rank_activity, groups))
            if is_logged:
                lines = dumps.get(rank, "").splitlines()[-count_rank_lines(len(links)) :]
                self._log.write(
                    _format(_describe_hang(rank, self._hung_ranks[rank], rank_activity, groups), rank, lines)
                )
        return events


def count_rank_lines(ranks: int) -> int:
    """Return the maximum number of stack lines of each rank if `ranks` ranks of the node hang together."""
    return max(1, MAX_LINES // ranks)


def _compute_idle_seconds(
    observations: Mapping[int, Observation], links: Mapping[int, RankLink], now: float
) -> Dict[int, float]:
    result = {}
    for rank, observation in observations.items():
        # Ignore a rank before its first step. It may already report metrics, or the step from which it resumes.
        if rank not in links or observation.first_stepped_at is None or observation.phase is not None:
            continue
        stepped_at = observation.stepped_at or observation.first_stepped_at
        result[rank] = now - max(stepped_at, observation.phase_ended_at or 0.0)
    return result


def _describe_hang(rank: int, seconds: float, rank_activity: Optional[str], groups: Tuple[GroupCollective, ...]) -> str:
    text = f"[muster] rank {rank} has completed no step for {seconds:.0f} s"
    if rank_activity:
        text += f" ({rank_activity})"
    if groups:
        state = "completed" if groups[0].pending_sequence is None else "not completed"
        text += f"; last collective: {groups[0].text}, {state}"
    return text


def _format(description: str, rank: int, lines: List[str]) -> bytes:
    """Return the lines for the log. The stack of the main thread is last, as faulthandler writes it."""
    prefix = STACK_PREFIX.format(rank=rank)
    prefixed_lines = [prefix + _clean(line) for line in lines] or [f"{prefix}no stack: the process does not answer"]
    return "".join(f"{line}\n" for line in (description, *prefixed_lines)).encode("utf-8", "replace")


def _clean(line: str) -> str:
    # A user's process can write anything to the file of its stacks.
    return "".join(character if character.isprintable() else " " for character in line[:MAX_LINE_CHARS])
