"""Whether this process leads: what the elector says of the Lease, and how long that holds."""

from __future__ import annotations

import asyncio
import select
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

from muster.clients.kubernetes.lease import stop_work
from muster.controller.health import Check, failed
from muster.controller.leader.messages import LeaseState, Pulse, Stage, encode, read_state

PULSE_SECONDS = 0.5
"""How often the elector hears that the event loop goes on."""


class ElectorEnded(Exception):
    """The elector has ended, so the Lease is not renewed. Start a new process: this one has threads, and can't fork."""


class LeaderElection:
    """The main process' end. Call `start` in its event loop before all else but `holds_lease`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._state = LeaseState()
        self._changed = asyncio.Event()
        self._reading = threading.Lock()
        self._is_closed = False
        self._ended_leader_term = -1
        self._stage: Stage = "starting"
        self._loop: asyncio.AbstractEventLoop | None = None
        self._alive: Sequence[Check] = ()
        self._ready: Sequence[Check] = ()

    @property
    def holder(self) -> str | None:
        """Who leads, as far as is known; None without a leader."""
        return self._state.holder

    def holds_lease(self) -> bool:
        """Whether this process may act as leader at this moment: asked before whatever others would notice.

        It looks at the clock first of all, so a process that was stopped, or computed for too long, does nothing more
        before it has heard of the Lease. Any thread may ask.
        """
        if time.monotonic() >= self._state.held_until:
            self._read()
        return self._state.leader_term is not None and time.monotonic() < self._state.held_until

    def start(self, alive: Sequence[Check], ready: Sequence[Check]) -> None:
        """Hear the elector from now on; it answers the kubelet by these checks."""
        self._alive, self._ready = alive, ready
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._connection.fileno(), self._hear)

    async def pulse(self) -> None:
        """Show that the event loop goes on, for ever."""
        while True:
            self._send()
            await asyncio.sleep(PULSE_SECONDS)

    async def run(self, lead: Callable[[int], Awaitable[None]]) -> None:
        """Run `lead(leader_term)` whenever the Lease is held, and cancel and await it when the Lease is lost.

        Goes on until cancelled, or until `lead` ends by itself, and raises what that raised; or `ElectorEnded`.
        """
        while True:
            self._stage = "candidate"
            self._send()
            leader_term = await self._leader_term_to_lead()
            work = asyncio.ensure_future(lead(leader_term))
            then: Stage = "leaving"
            try:
                await self._until_lost(leader_term, work)
                if work.done():
                    return work.result()
                then = "candidate"
            finally:
                await stop_work(work)
                self._ended_leader_term, self._stage = leader_term, then
                # Only now may the Lease be given back, or taken again.
                self._send()

    async def _leader_term_to_lead(self) -> int:
        while True:
            self._changed.clear()
            if (
                self.holds_lease()
                and self._state.leader_term is not None
                and self._state.leader_term > self._ended_leader_term
            ):
                return self._state.leader_term
            self._require_elector()
            await self._changed.wait()

    async def _until_lost(self, leader_term: int, work: asyncio.Future[None]) -> None:
        while not work.done() and self.holds_lease() and self._state.leader_term == leader_term:
            self._changed.clear()
            left = self._state.held_until - time.monotonic()
            heard = asyncio.create_task(self._changed.wait())
            waited_for: tuple[asyncio.Future[Any], ...] = (work, heard)
            try:
                await asyncio.wait(waited_for, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            finally:
                heard.cancel()
            self._require_elector()

    def _require_elector(self) -> None:
        if self._is_closed:
            raise ElectorEnded("the process that holds the Lease has ended; its messages say why")

    def _hear(self) -> None:
        self._read()
        if self._is_closed and self._loop is not None:
            self._loop.remove_reader(self._connection.fileno())

    def _read(self) -> None:
        with self._reading:
            before = self._state
            try:
                while not self._is_closed and self._connection.poll(0):
                    self._state = read_state(self._connection.recv_bytes())
            except (EOFError, OSError):
                self._is_closed, self._state = True, LeaseState()
            is_news = self._is_closed or self._state != before
        if is_news and self._loop is not None:
            self._loop.call_soon_threadsafe(self._changed.set)

    def _send(self) -> None:
        # An elector that reads nothing answers no kubelet either; this process need not wait for it.
        if self._is_closed or not select.select((), (self._connection,), (), 0)[1]:
            return
        pulse = Pulse(failed(self._alive), failed(self._ready), self._ended_leader_term, self._stage)
        try:
            self._connection.send_bytes(encode(pulse))
        except OSError:
            self._read()
