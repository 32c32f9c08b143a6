"""Hold the Lease and answer the kubelet's probes, in a separate process, which busy jobs can't delay.

The elector takes and renews the Lease only while the main process responds, and ends with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from muster.clients.kubernetes.access import NoCluster
from muster.clients.kubernetes.client import Client
from muster.clients.kubernetes.election import DEFAULT_TIMES, LeaseTimes
from muster.clients.kubernetes.lease import RELEASE_SECONDS, LeaderElector
from muster.controller.health import serve_health
from muster.controller.leader.messages import Heartbeat, LeaseState, decode_heartbeat, encode_message

STUCK_SECONDS = 30.0
"""If the main process' event loop sends no heartbeat for this long, /healthz fails and the Lease expires."""

SHUTDOWN_SECONDS = RELEASE_SECONDS + 1.0
"""The maximum time to release the Lease at shutdown."""

KILLED_EXIT_CODE = 1
"""The exit code after the main process was killed."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ElectorOptions:
    """The elector's options. If `lease_namespace` is None, it uses the kubeconfig's or the pod's own namespace."""

    lease_namespace: str | None
    lease_name: str
    identity: str
    times: LeaseTimes = DEFAULT_TIMES


async def hold_lease(
    connection: Connection, listening_socket: socket.socket, options: ElectorOptions, parent_pid: int
) -> None:
    """Hold the Lease while the main process `parent_pid` responds, until it ends or closes the connection."""
    main = MainProcess(connection, parent_pid)
    async with serve_health(listening_socket, main.get_liveness_failures, main.get_readiness_failures):
        work = asyncio.create_task(Elector(main, options).run(), name="elector")
        end_of_main = asyncio.create_task(main.has_ended.wait(), name="end of the main process")
        await asyncio.wait([work, end_of_main], return_when=asyncio.FIRST_COMPLETED)
        if not work.done() and not main.is_leaving:
            # The main process was killed, and one of its requests may still run: let the Lease expire instead.
            os._exit(KILLED_EXIT_CODE)
        await asyncio.wait([work], timeout=SHUTDOWN_SECONDS)
        work.cancel()
        end_of_main.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work


@dataclass
class Elector:
    """Takes and renews the Lease for the main process."""

    main: MainProcess
    options: ElectorOptions

    async def run(self) -> None:
        """Take the Lease and hold it, repeatedly, until the main process ends."""
        await self.main.is_candidate.wait()
        client = await _connect(self.options.times.poll)
        namespace = self.options.lease_namespace or client.namespace
        leader_elector: LeaderElector = LeaderElector(
            client,
            namespace,
            self.options.lease_name,
            self.options.identity,
            on_change=lambda: self._send_state(leader_elector),
            is_healthy=self.main.is_healthy,
            times=self.options.times,
        )
        sender = asyncio.create_task(self._send_state_repeatedly(leader_elector), name="state of the Lease")
        try:
            while not self.main.is_leaving:
                await leader_elector.run(lambda leader_term: self.main.lead(leader_term, leader_elector.held_until))
        finally:
            sender.cancel()
            await client.close()

    def _send_state(self, leader_elector: LeaderElector) -> None:
        self.main.send_state(leader_elector.held_until, leader_elector.holder)

    async def _send_state_repeatedly(self, leader_elector: LeaderElector) -> None:
        # No event reports that the Lease has expired: check it repeatedly.
        while True:
            await asyncio.sleep(self.options.times.poll)
            self._send_state(leader_elector)
            self.main.check_parent()


@dataclass
class MainProcess:
    """The main process, as the elector observes it. `monotonic` returns seconds."""

    connection: Connection
    pid: int
    monotonic: Callable[[], float] = time.monotonic
    is_candidate: asyncio.Event = field(default_factory=asyncio.Event)
    has_ended: asyncio.Event = field(default_factory=asyncio.Event)
    _heartbeat: Heartbeat = field(default_factory=Heartbeat)
    _heartbeat_at: float = field(init=False)
    _has_message: asyncio.Event = field(default_factory=asyncio.Event)
    _sent_state: LeaseState = field(default_factory=LeaseState)
    _leader_term: int | None = None
    _was_healthy: bool = True

    def __post_init__(self) -> None:
        self._heartbeat_at = self.monotonic()
        asyncio.get_running_loop().add_reader(self.connection.fileno(), self._on_readable)

    @property
    def is_leaving(self) -> bool:
        """Whether the main process is shutting down."""
        return self._heartbeat.stage == "leaving"

    def get_liveness_failures(self) -> tuple[str, ...]:
        """Return the failure messages for /healthz."""
        silent_seconds = self.monotonic() - self._heartbeat_at
        is_stuck = silent_seconds > STUCK_SECONDS
        stuck = (f"the operator's event loop has been stuck for {silent_seconds:.0f} s",) if is_stuck else ()
        return (*stuck, *self._heartbeat.liveness_failures)

    def get_readiness_failures(self) -> tuple[str, ...]:
        """Return the failure messages for /readyz."""
        return self._heartbeat.readiness_failures

    def is_healthy(self) -> bool:
        """Whether the main process responds, so that it can lead."""
        if self.is_leaving:
            return False
        is_healthy = self.monotonic() - self._heartbeat_at <= STUCK_SECONDS and not is_stopped(self.pid)
        if self._was_healthy and not is_healthy:
            _log.error("the main process doesn't respond, so muster neither takes nor renews the Lease")
        self._was_healthy = is_healthy
        return is_healthy

    def check_parent(self) -> None:
        """Detect that the main process has ended, even if another process keeps the connection open."""
        if os.getppid() != self.pid:
            self.has_ended.set()

    async def lead(self, leader_term: int, held_until: float) -> None:
        """Let the main process lead, and wait until it reports the end of its work as leader."""
        self._leader_term = leader_term
        self.send_state(held_until, self._sent_state.holder)
        while self._heartbeat.ended_leader_term < leader_term:
            self._has_message.clear()
            try:
                await self._has_message.wait()
            except asyncio.CancelledError:
                # The Lease is lost, and the main process knows it: wait until it has stopped its work.
                if self.has_ended.is_set():
                    raise

    def send_state(self, held_until: float, holder: str | None) -> None:
        """Send the Lease's state to the main process, if it changed."""
        is_held = held_until > float("-inf")
        state = LeaseState(self._leader_term, held_until, holder) if is_held else LeaseState(holder=holder)
        if state == self._sent_state or self.has_ended.is_set():
            return
        self._sent_state = state
        try:
            self.connection.send_bytes(encode_message(state))
        except OSError:
            self.has_ended.set()

    def _on_readable(self) -> None:
        try:
            while self.connection.poll(0):
                self._heartbeat = decode_heartbeat(self.connection.recv_bytes())
                self._heartbeat_at = self.monotonic()
        except (EOFError, OSError):
            asyncio.get_running_loop().remove_reader(self.connection.fileno())
            self.has_ended.set()
        if self._heartbeat.stage == "candidate":
            self.is_candidate.set()
        self._has_message.set()


def is_stopped(pid: int) -> bool:
    """Whether the process is stopped, as by SIGSTOP; False if the system doesn't report it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return fields.rpartition(")")[2].split()[:1] in (["T"], ["t"])


async def _connect(retry_seconds: float) -> Client:
    while True:
        try:
            return await Client.connect()
        except NoCluster as problem:
            _log.warning("can't take the Lease, because the cluster can't be reached: %s", problem)
            await asyncio.sleep(retry_seconds)
