"""Finds ranks of this node that complete no step any more: writes their stacks to the log, and reports what they do.

The agent needs no command for this: it acts before the operator can decide, and also while the operator is away.
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

MAX_LINES = 4000
"""Maximum number of lines that the ranks of the node write each time, together."""

MIN_RANK_LINES = 60
"""A rank may always write this number of lines: at least its main thread."""

MAX_LINE_CHARS = 300

STACK_PREFIX = "[muster] rank {rank} | "
"""Start of each line of a stack. `muster stacks` searches for it."""

EARLY_FACTOR = 0.9
"""The agent acts after this part of the timeout, so that the report of a hang has the activities."""


class HangWatch:
    """Watches the ranks of one attempt. A rank hangs after `timeout` seconds without a step and outside of a phase."""

    def __init__(self, timeout: float, log: Log) -> None:
        self._seconds = EARLY_FACTOR * timeout
        self._log = log
        self._hung: Dict[int, float] = {}  # the ranks whose stacks are in the log, with the time of their last step
        self._captures = 0

    def check(self, observations: Mapping[int, Observation], links: Mapping[int, RankLink], now: float) -> List[Event]:
        """Return the activities of ranks that hang since the last check; None for ranks that complete steps again."""
        idle = _idle_seconds(observations, links, now)
        is_hanging = max(idle.values(), default=0.0) >= self._seconds
        # Include peers that completed their last step a little later.
        hung = {rank: seconds for rank, seconds in idle.items() if is_hanging and seconds >= self._seconds / 2}
        events: List[Event] = [ActivityChanged(rank, None) for rank in self._hung if rank in links and rank not in hung]
        new = {rank: links[rank] for rank in hung if rank not in self._hung}
        self._hung = hung
        return events + (self._capture(new) if new else [])

    def _capture(self, links: Mapping[int, RankLink]) -> List[Event]:
        dumps = stack_dump.capture_link_dumps(links)
        collectives = collective_dump.read_collectives(links)
        is_logged = self._captures < MAX_CAPTURES
        self._captures += 1
        events: List[Event] = []
        for rank, link in links.items():
            state = None if link.pid is None else processes.describe_stop(link.pid)
            current = state or activity.describe_dump(dumps.get(rank, ""))
            groups = collectives.get(rank, ())
            if current is not None or groups:
                events.append(ActivityChanged(rank, current, groups))
            if is_logged:
                lines = dumps.get(rank, "").splitlines()[-max(MIN_RANK_LINES, MAX_LINES // len(links)) :]
                self._log.write(_format(_header(rank, self._hung[rank], current, groups), rank, lines))
        return events


def _idle_seconds(
    observations: Mapping[int, Observation], links: Mapping[int, RankLink], now: float
) -> Dict[int, float]:
    result = {}
    for rank, observation in observations.items():
        # A rank counts from its first step on. Before that it may report metrics, or the step that it resumes from.
        if rank not in links or observation.first_stepped_at is None or observation.phase is not None:
            continue
        stepped_at = observation.stepped_at or observation.first_stepped_at
        result[rank] = now - max(stepped_at, observation.phase_ended_at or 0.0)
    return result


def _header(rank: int, seconds: float, current: Optional[str], groups: Tuple[GroupCollective, ...]) -> str:
    text = f"[muster] rank {rank} has completed no step for {seconds:.0f} s"
    if current:
        text += f" ({current})"
    if groups:
        state = "completed" if groups[0].pending_sequence is None else "not completed"
        text += f"; last collective: {groups[0].text}, {state}"
    return text


def _format(header: str, rank: int, lines: List[str]) -> bytes:
    """Return the lines for the log, with the stack of the main thread last, as faulthandler writes it."""
    prefix = STACK_PREFIX.format(rank=rank)
    shown = [prefix + _clean(line) for line in lines] or [f"{prefix}no stack: the process does not answer"]
    return "".join(f"{line}\n" for line in (header, *shown)).encode("utf-8", "replace")


def _clean(line: str) -> str:
    # A user's process can write to the file of its stacks.
    return "".join(character if character.isprintable() else " " for character in line[:MAX_LINE_CHARS])
