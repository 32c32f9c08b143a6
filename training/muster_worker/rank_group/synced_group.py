"""A rank group with S3 downloads before its start and uploads after its end."""

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
    """A rank group with downloads and uploads. `sync` is a socket; None if the job has no files in S3."""

    def __init__(self, rank_group: RankGroup, sync: Optional[str], selector: selectors.BaseSelector, log: Log) -> None:
        self._rank_group = rank_group
        self._sync = sync
        self._selector = selector
        self._log = log
        self._base: Mapping[str, str] = {}
        self._request: Optional[SyncRequest] = None  # while a download or upload runs
        self._is_over = False  # the rank group has ended, or was not started
        self.finished = False

    @property
    def is_uploading(self) -> bool:
        """Whether the rank group has ended and the upload of its files runs."""
        return self._is_over and not self.finished

    def launch(self, base: Mapping[str, str]) -> List[Event]:
        """Start the rank group after the download of newer files."""
        self._base = base
        if self._sync is None:
            return self._start_upload_after_end(self._rank_group.launch(base))
        self._send_request(self._sync, REFRESH)
        return self.step()

    @property
    def next_step_in(self) -> Optional[float]:
        """Seconds until `step` is due; None while waiting for events."""
        if self._request is None:
            return self._rank_group.next_step_in
        at = self._request.next_step_at
        return None if at is None else max(0.0, at - time.monotonic())

    def step(self) -> List[Event]:
        """Do what is due, and handle the answer of the sync server."""
        if self._request is None:
            return self._start_upload_after_end(self._rank_group.step())
        request = self._request
        request.step(time.monotonic())
        if not request.answered:
            return []
        self._request = None
        if request.problem is None and not self._is_over:
            return self._start_upload_after_end(self._rank_group.launch(self._base))
        events: List[Event] = []
        if request.problem is not None:
            self._log.print_line(request.problem.message)
            events.append(ProblemFound(request.problem))
        return events + self._end()

    def stop(self, grace: float) -> List[Event]:
        """Stop the rank group. A running upload continues."""
        if self.finished or self.is_uploading:
            return []
        if self._request is not None:
            return self._end()
        return self._rank_group.stop(grace)

    def kill(self) -> List[Event]:
        """Kill the rank group and stop waiting for the sync server."""
        self._sync = None
        if self.finished:
            return []
        return self._end() if self._request is not None else self._rank_group.kill()

    def abandon_upload(self) -> List[Event]:
        """Stop waiting for an upload, because the node terminates.

        The sync container also gets SIGTERM, and finishes the upload by itself.
        """
        self._sync = None
        return self._end() if self.is_uploading else []

    def on_reaped(self, ended: List[Ended]) -> List[Event]:
        """Handle children of the rank group that have ended."""
        return self._rank_group.on_reaped(ended)

    def observe(self) -> Tuple[Mapping[int, Observation], List[MetricRecord]]:
        """The current observations and metrics of the ranks."""
        return self._rank_group.observe()

    @property
    def launcher_lines(self) -> Tuple[str, ...]:
        """The launcher's last lines."""
        return self._rank_group.launcher_lines

    def _start_upload_after_end(self, events: List[Event]) -> List[Event]:
        """Start the upload when the rank group has ended."""
        if not self._rank_group.finished or self._is_over:
            return events
        self._is_over = True
        if self._sync is None:
            self.finished = True
            return events
        self._send_request(self._sync, FINISH)
        ended = PhaseReached(AgentPhase.ENDED)
        return [*(event for event in events if event != ended), PhaseReached(AgentPhase.UPLOADING)]

    def _send_request(self, sync: str, request: str) -> None:
        self._request = SyncRequest(sync, request, self._selector, time.monotonic())

    def _end(self) -> List[Event]:
        if self._request is not None:
            self._request.close()
            self._request = None
        self._is_over = self.finished = True
        return [PhaseReached(AgentPhase.ENDED)]
