"""Track whether this process is the leader. The elector sends messages about the Lease."""

from __future__ import annotations

import asyncio
import select
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

from muster.clients.kubernetes.lease import stop_work
from muster.controller.health import HealthCheck, get_failure_messages
from muster.controller.leader.messages import Heartbeat, LeaseState, Stage, decode_lease_state, encode_message

HEARTBEAT_SECONDS = 0.5
"""The interval of heartbeats, which show the elector that the event loop runs."""


class ElectorExited(Exception):
    """The elector's process has ended, so no process renews the Lease.

    Restart the operator: a process with threads can't fork another elector.
    """


class LeaderElection:
    """The connection of the main process to the elector.

    Call `start` in its event loop before any other method except `holds_lease`.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._state = LeaseState()
        self._change_event = asyncio.Event()
        self._read_lock = threading.Lock()
        self._is_closed = False
        self._ended_leader_term = -1
        self._stage: Stage = "starting"
        self._loop: asyncio.AbstractEventLoop | None = None
        self._liveness_checks: Sequence[HealthCheck] = ()
        self._readiness_checks: Sequence[HealthCheck] = ()

    @property
    def holder(self) -> str | None:
        """The identity of the leader that this process last heard of; None without a leader."""
        return self._state.holder

    def holds_lease(self) -> bool:
        """Whether this process may act as leader now. Check it before every action that other processes can observe.

        The operating system may suspend a process until its Lease has expired. So this checks the clock, and then reads
        the newest state of the Lease. Any thread may call this.
        """
        if time.monotonic() >= self._state.held_until:
            self._read_messages()
        return self._state.leader_term is not None and time.monotonic() < self._state.held_until

    def start(self, liveness_checks: Sequence[HealthCheck], readiness_checks: Sequence[HealthCheck]) -> None:
        """Start to read the elector's messages. The elector answers the kubelet's probes with these checks."""
        self._liveness_checks, self._readiness_checks = liveness_checks, readiness_checks
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._connection.fileno(), self._on_readable)

    async def send_heartbeats(self) -> None:
        """Send heartbeats, until cancelled."""
        while True:
            self._send_heartbeat()
            await asyncio.sleep(HEARTBEAT_SECONDS)

    async def run(self, lead: Callable[[int], Awaitable[None]]) -> None:
        """Run `lead(leader_term)` whenever this process holds the Lease, and cancel it when the Lease is lost.

        Runs until cancelled, or until `lead` returns or raises. Raises `ElectorExited`.
        """
        while True:
            self._stage = "candidate"
            self._send_heartbeat()
            leader_term = await self._wait_for_lease()
            work = asyncio.ensure_future(lead(leader_term))
            next_stage: Stage = "leaving"
            try:
                await self._wait_until_lost(leader_term, work)
                if work.done():
                    return work.result()
                next_stage = "candidate"
            finally:
                await stop_work(work)
                self._ended_leader_term, self._stage = leader_term, next_stage
                # The elector may release or take the Lease only after this message.
                self._send_heartbeat()

    async def _wait_for_lease(self) -> int:
        while True:
            self._change_event.clear()
            if (
                self.holds_lease()
                and self._state.leader_term is not None
                and self._state.leader_term > self._ended_leader_term
            ):
                return self._state.leader_term
            self._check_elector()
            await self._change_event.wait()

    async def _wait_until_lost(self, leader_term: int, work: asyncio.Future[None]) -> None:
        while not work.done() and self.holds_lease() and self._state.leader_term == leader_term:
            self._change_event.clear()
            timeout = self._state.held_until - time.monotonic()
            message = asyncio.create_task(self._change_event.wait())
            futures: tuple[asyncio.Future[Any], ...] = (work, message)
            try:
                await asyncio.wait(futures, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            finally:
                message.cancel()
            self._check_elector()

    def _check_elector(self) -> None:
        if self._is_closed:
            raise ElectorExited("the process that holds the Lease has ended; see its log messages")

    def _on_readable(self) -> None:
        self._read_messages()
        if self._is_closed and self._loop is not None:
            self._loop.remove_reader(self._connection.fileno())

    def _read_messages(self) -> None:
        with self._read_lock:
            previous = self._state
            try:
                while not self._is_closed and self._connection.poll(0):
                    self._state = decode_lease_state(self._connection.recv_bytes())
            except (EOFError, OSError):
                self._is_closed, self._state = True, LeaseState()
            is_changed = self._is_closed or self._state != previous
        if is_changed and self._loop is not None:
            self._loop.call_soon_threadsafe(self._change_event.set)

    def _send_heartbeat(self) -> None:
        # Don't wait for an elector that doesn't read its messages: it doesn't answer probes either.
        if self._is_closed or not select.select((), (self._connection,), (), 0)[1]:
            return
        heartbeat = Heartbeat(
            get_failure_messages(self._liveness_checks),
            get_failure_messages(self._readiness_checks),
            self._ended_leader_term,
            self._stage,
        )
        try:
            self._connection.send_bytes(encode_message(heartbeat))
        except OSError:
            self._read_messages()
