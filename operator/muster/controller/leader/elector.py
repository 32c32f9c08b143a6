"""Holds the Lease and answers the kubelet, in a process of its own: neither waits for what jobs cost the main one.

It takes and renews the Lease only while the main process goes on, and ends with it.
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
from muster.clients.kubernetes.election import LOOK_SECONDS
from muster.clients.kubernetes.lease import RELEASE_SECONDS, Leadership
from muster.controller.health import serve_health
from muster.controller.leader.messages import LeaseState, Pulse, encode, read_pulse

STUCK_SECONDS = 30.0
"""After so long without a step of the main process' loop /healthz fails, and the Lease is not renewed any more."""

LEAVE_SECONDS = RELEASE_SECONDS + 1.0
"""How long an orderly end waits until the Lease is given back."""

KILLED = 1
"""The exit code after the main process was killed: no process reads it."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ElectorOptions:
    """`lease_namespace` None: the one that the kubeconfig's context, or the pod, is in."""

    lease_namespace: str | None
    lease_name: str
    identity: str


async def elect(connection: Connection, listening: socket.socket, options: ElectorOptions, parent: int) -> None:
    """Hold the Lease whenever that is possible, until the main process, `parent`, ends or closes the connection."""
    main = MainProcess(connection, parent)
    async with serve_health(listening, main.not_alive, main.not_ready):
        work = asyncio.create_task(Elector(main, options).run(), name="elector")
        ended = asyncio.create_task(main.has_ended.wait(), name="end of the main process")
        await asyncio.wait([work, ended], return_when=asyncio.FIRST_COMPLETED)
        if not work.done() and not main.is_leaving:
            # It was killed, maybe in the middle of a request: its Lease runs out, and is not given back.
            os._exit(KILLED)
        await asyncio.wait([work], timeout=LEAVE_SECONDS)
        work.cancel()
        ended.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work


@dataclass
class Elector:
    """Leads a Leadership in the main process' name."""

    main: MainProcess
    options: ElectorOptions

    async def run(self) -> None:
        """Take the Lease and hold it, again and again, until the main process ends."""
        await self.main.is_candidate.wait()
        client = await _connect()
        namespace = self.options.lease_namespace or client.namespace
        leadership: Leadership = Leadership(
            client,
            namespace,
            self.options.lease_name,
            self.options.identity,
            on_change=lambda: self._tell(leadership),
            is_fit=self.main.is_fit,
        )
        telling = asyncio.create_task(self._tell_always(leadership), name="state of the Lease")
        try:
            while not self.main.is_leaving:
                await leadership.run(lambda leader_term: self.main.lead(leader_term, leadership.held_until))
        finally:
            telling.cancel()
            await client.close()

    def _tell(self, leadership: Leadership) -> None:
        self.main.tell(leadership.held_until, leadership.holder)

    async def _tell_always(self, leadership: Leadership) -> None:
        # Who leads also changes by nothing but time.
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self._tell(leadership)
            self.main.look_after()


@dataclass
class MainProcess:
    """The process that runs the jobs, as the elector sees it. `monotonic` gives seconds."""

    connection: Connection
    pid: int
    monotonic: Callable[[], float] = time.monotonic
    is_candidate: asyncio.Event = field(default_factory=asyncio.Event)
    has_ended: asyncio.Event = field(default_factory=asyncio.Event)
    _pulse: Pulse = field(default_factory=Pulse)
    _heard_at: float = field(init=False)
    _heard: asyncio.Event = field(default_factory=asyncio.Event)
    _sent: LeaseState = field(default_factory=LeaseState)
    _leader_term: int | None = None
    _was_fit: bool = True

    def __post_init__(self) -> None:
        self._heard_at = self.monotonic()
        asyncio.get_running_loop().add_reader(self.connection.fileno(), self._hear)

    @property
    def is_leaving(self) -> bool:
        """Whether it does nothing more as leader, and will not again."""
        return self._pulse.stage == "leaving"

    def not_alive(self) -> tuple[str, ...]:
        """What /healthz complains of."""
        silent = self.monotonic() - self._heard_at
        stuck = (f"its event loop has made no step for {silent:.0f} s",) if silent > STUCK_SECONDS else ()
        return (*stuck, *self._pulse.not_alive)

    def not_ready(self) -> tuple[str, ...]:
        """What /readyz complains of."""
        return self._pulse.not_ready

    def is_fit(self) -> bool:
        """Whether it could do a leader's work."""
        if self.is_leaving:
            return False
        is_fit = self.monotonic() - self._heard_at <= STUCK_SECONDS and not is_stopped(self.pid)
        if self._was_fit and not is_fit:
            _log.error("the main process makes no step: the Lease is neither taken nor renewed")
        self._was_fit = is_fit
        return is_fit

    def look_after(self) -> None:
        """See whether it is still there: another process may have kept its end of the connection open."""
        if os.getppid() != self.pid:
            self.has_ended.set()

    async def lead(self, leader_term: int, held_until: float) -> None:
        """Let it lead, until it says that what it did as leader has ended."""
        self._leader_term = leader_term
        self.tell(held_until, self._sent.holder)
        while self._pulse.ended_leader_term < leader_term:
            self._heard.clear()
            try:
                await self._heard.wait()
            except asyncio.CancelledError:
                # The Lease is lost and the main process knows: let it finish what it does.
                if self.has_ended.is_set():
                    raise

    def tell(self, held_until: float, holder: str | None) -> None:
        """Tell it how the Lease stands, when that has changed."""
        is_held = held_until > float("-inf")
        state = LeaseState(self._leader_term, held_until, holder) if is_held else LeaseState(holder=holder)
        if state == self._sent or self.has_ended.is_set():
            return
        self._sent = state
        try:
            self.connection.send_bytes(encode(state))
        except OSError:
            self.has_ended.set()

    def _hear(self) -> None:
        try:
            while self.connection.poll(0):
                self._pulse = read_pulse(self.connection.recv_bytes())
                self._heard_at = self.monotonic()
        except (EOFError, OSError):
            asyncio.get_running_loop().remove_reader(self.connection.fileno())
            self.has_ended.set()
        if self._pulse.stage == "candidate":
            self.is_candidate.set()
        self._heard.set()


def is_stopped(pid: int) -> bool:
    """Whether the process is stopped, as by SIGSTOP; never where the system doesn't say."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return fields.rpartition(")")[2].split()[:1] in (["T"], ["t"])


async def _connect() -> Client:
    while True:
        try:
            return await Client.connect()
        except NoCluster as problem:
            _log.warning("the Lease can't be looked at: %s", problem)
            await asyncio.sleep(LOOK_SECONDS)
