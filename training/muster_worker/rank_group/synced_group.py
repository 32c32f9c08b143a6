"""A rank group with S3 downloads before its start and uploads after its end."""

from __future__ import annotations

import selectors
import socket
import time
from typing import List, Mapping, NamedTuple, Optional, Tuple

from muster_worker.agent.log import Log
from muster_worker.agent.reports import Observation
from muster_worker.agent.state import Event, PhaseReached, ProblemFound
from muster_worker.agent.sync_request import FINISH, REFRESH, SyncRequest
from muster_worker.contract.schema import AgentPhase, Credentials
from muster_worker.launchers.base import LauncherIO
from muster_worker.launchers.environment import NodeContext
from muster_worker.launchers.registry import find_launcher
from muster_worker.machine.processes import ProcessExit
from muster_worker.rank_group.group import RankGroup


class RankGroupResources(NamedTuple):
    """The node's resources for a rank group: the event loop, the log, a bound socket, and the sync server's socket."""

    selector: selectors.BaseSelector
    log: Log
    port_socket: Optional[socket.socket]
    sync_socket: Optional[str]


def create_rank_group(
    context: NodeContext,
    environment: Mapping[str, str],
    credentials: Optional[Credentials],
    resources: RankGroupResources,
) -> SyncedRankGroup:
    """Join the attempt's world, if its launcher has one, and return the node's processes. Raises `OSError`."""
    world = None
    if resources.port_socket is not None:
        io = LauncherIO(resources.port_socket, resources.selector, resources.log)
        world = find_launcher(context.plan.launcher).join_world(context, environment, credentials, io)
    rank_group = RankGroup(context, resources.selector, resources.log, world)
    return SyncedRankGroup(rank_group, resources.sync_socket, resources.selector, resources.log)


class SyncedRankGroup:
    """A rank group with downloads and uploads. `sync_socket` is the path of the sync server's socket.

    `sync_socket` is None if the job has no files in S3.
    """

    def __init__(
        self, rank_group: RankGroup, sync_socket: Optional[str], selector: selectors.BaseSelector, log: Log
    ) -> None:
        self._rank_group = rank_group
        self._sync_socket = sync_socket
        self._selector = selector
        self._log = log
        self._base_environment: Mapping[str, str] = {}
        self._request: Optional[SyncRequest] = None  # while a download or upload runs
        self._is_group_over = False  # the rank group has ended, or will not start
        self.is_finished = False

    @property
    def is_uploading(self) -> bool:
        """Whether the rank group has ended and the upload of its files runs."""
        return self._is_group_over and not self.is_finished

    def launch(self, base_environment: Mapping[str, str]) -> List[Event]:
        """Download the files that are newer in S3, then start the rank group."""
        self._base_environment = base_environment
        if self._sync_socket is None:
            return self._start_upload_after_end(self._rank_group.launch(base_environment))
        self._send_request(self._sync_socket, REFRESH)
        return self.poll()

    @property
    def next_poll_in(self) -> Optional[float]:
        """Seconds until `poll` is due; None while waiting for events."""
        if self._request is None:
            return self._rank_group.next_poll_in
        poll_at = self._request.next_poll_at
        return None if poll_at is None else max(0.0, poll_at - time.monotonic())

    def poll(self) -> List[Event]:
        """Poll the sync server if it has a request, else the rank group."""
        if self._request is None:
            return self._start_upload_after_end(self._rank_group.poll())
        request = self._request
        request.poll(time.monotonic())
        if not request.is_answered:
            return []
        self._request = None
        if request.problem is None and not self._is_group_over:
            return self._start_upload_after_end(self._rank_group.launch(self._base_environment))
        events: List[Event] = []
        if request.problem is not None:
            self._log.print_line(request.problem.message)
            events.append(ProblemFound(request.problem))
        return events + self._end()

    def stop(self, grace: float, *, is_graceful: bool = False, stop_call: int = 0) -> List[Event]:
        """Stop the rank group, see `RankGroup.stop`. A running upload continues."""
        if self.is_finished or self.is_uploading:
            return []
        if self._request is not None:
            return self._end()
        return self._rank_group.stop(grace, is_graceful=is_graceful, stop_call=stop_call)

    def kill(self) -> List[Event]:
        """Kill the rank group and stop waiting for the sync server."""
        self._sync_socket = None
        if self.is_finished:
            return []
        return self._end() if self._request is not None else self._rank_group.kill()

    def abandon_upload(self) -> List[Event]:
        """Stop waiting for an upload, because the node terminates.

        The sync container also gets SIGTERM, and finishes the upload by itself.
        """
        self._sync_socket = None
        return self._end() if self.is_uploading else []

    def on_reaped(self, exits: List[ProcessExit]) -> List[Event]:
        """Handle children of the rank group that have ended."""
        return self._rank_group.on_reaped(exits)

    def observe(self) -> Tuple[Mapping[int, Observation], List[Event]]:
        """Return each rank's observation, and the events since the last call."""
        return self._rank_group.observe()

    @property
    def launcher_lines(self) -> Tuple[str, ...]:
        """The launcher's last lines."""
        return self._rank_group.launcher_lines

    def _start_upload_after_end(self, events: List[Event]) -> List[Event]:
        """Start the upload when the rank group has ended."""
        if not self._rank_group.is_finished or self._is_group_over:
            return events
        self._is_group_over = True
        if self._sync_socket is None:
            self.is_finished = True
            return events
        self._send_request(self._sync_socket, FINISH)
        group_ended = PhaseReached(AgentPhase.ENDED)
        return [*(event for event in events if event != group_ended), PhaseReached(AgentPhase.UPLOADING)]

    def _send_request(self, sync_socket: str, request: str) -> None:
        self._request = SyncRequest(sync_socket, request, self._selector, time.monotonic())

    def _end(self) -> List[Event]:
        if self._request is not None:
            self._request.close()
            self._request = None
        self._is_group_over = self.is_finished = True
        return [PhaseReached(AgentPhase.ENDED)]
