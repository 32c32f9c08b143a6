"""A rank group with its downloads from S3 before it starts, and its uploads once it has ended."""

from __future__ import annotations

import selectors
import time
from typing import List, Mapping, Optional, Tuple

from muster_worker.agent.log import Log
from muster_worker.agent.reports import Observation
from muster_worker.agent.state import Event, MetricRecord, PhaseReached, ProblemFound
from muster_worker.agent.sync_request import FINISH, REFRESH, SyncRequest
from muster_worker.contract.schema import AgentPhase
from muster_worker.machine.processes import Ended
from muster_worker.rank_group.group import RankGroup


class SyncedRankGroup:
    """The rank group, with downloads before and uploads after it. `sync` is a socket; None: no files are in S3."""

    def __init__(self, rank_group: RankGroup, sync: Optional[str], selector: selectors.BaseSelector, log: Log) -> None:
        self._rank_group = rank_group
        self._sync = sync
        self._selector = selector
        self._log = log
        self._base: Mapping[str, str] = {}
        self._call: Optional[SyncRequest] = None  # while the sync is at work, before or after the rank group
        self._is_over = False  # no process of the rank group is left, or none was started
        self.finished = False

    @property
    def uploading(self) -> bool:
        """Whether the rank group has ended, and what it left is being brought away."""
        return self._is_over and not self.finished

    def launch(self, base: Mapping[str, str]) -> List[Event]:
        """Start, once the sync has fetched what is newer than what lies here."""
        self._base = base
        if self._sync is None:
            return self._followed(self._rank_group.launch(base))
        self._ask(self._sync, REFRESH)
        return self.step()

    @property
    def next_step_in(self) -> Optional[float]:
        """Seconds until `step` has something to do; None while only events matter."""
        if self._call is None:
            return self._rank_group.next_step_in
        at = self._call.next_step_at
        return None if at is None else max(0.0, at - time.monotonic())

    def step(self) -> List[Event]:
        """What is due now, and what the sync server has answered."""
        if self._call is None:
            return self._followed(self._rank_group.step())
        call = self._call
        call.step(time.monotonic())
        if not call.answered:
            return []
        self._call = None
        if call.problem is None and not self._is_over:
            return self._followed(self._rank_group.launch(self._base))
        events: List[Event] = []
        if call.problem is not None:
            self._log.say(call.problem.message)
            events.append(ProblemFound(call.problem))
        return events + self._end()

    def stop(self, grace: float) -> List[Event]:
        """As the rank group's. What is being brought away is brought away."""
        if self.finished or self.uploading:
            return []
        if self._call is not None:
            return self._end()
        return self._rank_group.stop(grace)

    def kill(self) -> List[Event]:
        """As the rank group's; nobody waits for the sync any more."""
        self._sync = None
        if self.finished:
            return []
        return self._end() if self._call is not None else self._rank_group.kill()

    def leave(self) -> List[Event]:
        """The node is being taken away: its sync hears that too, and does what it still can by itself."""
        self._sync = None
        return self._end() if self.uploading else []

    def on_reaped(self, ended: List[Ended]) -> List[Event]:
        """As the rank group's."""
        return self._rank_group.on_reaped(ended)

    def observe(self) -> Tuple[Mapping[int, Observation], List[MetricRecord]]:
        """As the rank group's."""
        return self._rank_group.observe()

    @property
    def launcher_lines(self) -> Tuple[str, ...]:
        """As the rank group's."""
        return self._rank_group.launcher_lines

    def _followed(self, events: List[Event]) -> List[Event]:
        """The rank group's events, and what follows when it has ended."""
        if not self._rank_group.finished or self._is_over:
            return events
        self._is_over = True
        if self._sync is None:
            self.finished = True
            return events
        self._ask(self._sync, FINISH)
        ended = PhaseReached(AgentPhase.ENDED)
        return [*(event for event in events if event != ended), PhaseReached(AgentPhase.UPLOADING)]

    def _ask(self, sync: str, request: str) -> None:
        self._call = SyncRequest(sync, request, self._selector, time.monotonic())

    def _end(self) -> List[Event]:
        if self._call is not None:
            self._call.close()
            self._call = None
        self._is_over = self.finished = True
        return [PhaseReached(AgentPhase.ENDED)]
