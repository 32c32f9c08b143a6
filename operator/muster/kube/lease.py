"""Leadership: of all processes that want to lead, one does, for as long as it holds a Lease."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import time
from collections.abc import Awaitable, Callable

from muster.kube.client import Client
from muster.kube.election import (
    GIVE_UP_SECONDS,
    LOOK_SECONDS,
    RENEW_SECONDS,
    Record,
    Step,
    next_leader_term,
    next_step,
    record,
    released,
    renewed,
    taken,
)
from muster.kube.errors import ApiError
from muster.kube.kinds import LEASES, Object
from muster.kube.session import always

REQUEST_SECONDS = 5.0
"""How long one look or renewal may take, so that another is tried before it is too late."""

RELEASE_SECONDS = 2.0
"""How long the process tries to give the Lease back: a restart waits for the process to end."""

_log = logging.getLogger(__name__)


def new_identity() -> str:
    """This process's, like no other's: `<host>_<random>`."""
    return f"{socket.gethostname()}_{secrets.token_hex(4)}"


def nothing() -> None:
    """The listener that does nothing."""


class Leadership:
    """Waits for a Lease, and leads while it holds it.

    A term is the Lease's `leaseTransitions`. It rises with every acquisition, also by a process that replaces another
    of the same host, and also when the Lease was deleted (`muster.kube.election.next_leader_term`).

    `on_change` is called after each answer of the API server. `is_fit` is asked before the Lease is taken or renewed:
    a process that could not do a leader's work lets it run out.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        *,
        clock: Callable[[], float] = time.time,
        on_change: Callable[[], None] = nothing,
        is_fit: Callable[[], bool] = always,
    ) -> None:
        self.held_until = float("-inf")
        """Monotonic seconds: until then no other process takes the Lease, whatever happens to this one."""
        self._client = client
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._clock = clock
        self._on_change = on_change
        self._is_fit = is_fit
        self._known: Record | None = None
        self._observed_at = 0.0
        self._highest = 0

    @property
    def holder(self) -> str | None:
        """Who leads, as far as is known; None: no one."""
        current = self._known
        if current is None or not current.holder or time.monotonic() >= self._observed_at + current.seconds:
            return None
        return current.holder

    async def run(self, lead: Callable[[int], Awaitable[None]]) -> None:
        """Run `lead(leader_term)` whenever the Lease is held, and cancel and await it when the Lease is lost.

        Goes on until cancelled, or until `lead` ends by itself, and raises what that raised; gives the Lease back then.
        """
        while True:
            leader_term, held_since = await self._acquire()
            _log.info("%s leads, term %d", self._identity, leader_term)
            self._is_held(held_since)
            work = asyncio.ensure_future(lead(leader_term))
            try:
                await self._hold(leader_term, held_since, work)
                if work.done():
                    return work.result()
            finally:
                self._is_held(float("-inf"))
                await stop_work(work)
                await self._release(leader_term)
            _log.warning("%s does not lead any more", self._identity)

    async def _acquire(self) -> tuple[int, float]:
        """The term, and when it was asked for."""
        while True:
            try:
                async with asyncio.timeout(REQUEST_SECONDS):
                    await self._look()
                    self._on_change()
                    asked_at = time.monotonic()
                    step = next_step(self._known, self._observed_at, asked_at, self._identity)
                    if step is not Step.WAIT and self._is_fit():
                        return await self._take(step), asked_at
            except (ApiError, TimeoutError) as error:
                _log.warning("%s could not look at the Lease or take it: %s", self._identity, _why(error))
            await asyncio.sleep(LOOK_SECONDS)

    async def _take(self, step: Step) -> int:
        now = self._clock()
        leader_term = next_leader_term(self._known, self._highest, now)
        lease = taken(self._known, self._name, self._identity, leader_term, now)
        if step is Step.CREATE:
            self._observe(await self._client.create(LEASES, self._namespace, lease))
        else:
            await self._replace(lease)
        return leader_term

    async def _hold(self, leader_term: int, renewed_at: float, work: asyncio.Future[None]) -> None:
        """Renew until the Lease is lost, or the work is over."""
        wait = RENEW_SECONDS
        while True:
            await asyncio.wait([work], timeout=wait)
            asked_at = time.monotonic()
            left = renewed_at + GIVE_UP_SECONDS - asked_at
            if work.done() or left <= 0:
                return
            if not self._is_fit():
                wait = min(LOOK_SECONDS, left)
                continue
            try:
                async with asyncio.timeout(min(REQUEST_SECONDS, left)):
                    await self._change(leader_term, renewed)
                renewed_at, wait = asked_at, RENEW_SECONDS
                self._is_held(renewed_at)
            except _Lost:
                return
            except (ApiError, TimeoutError) as error:
                _log.warning("%s could not renew the Lease: %s", self._identity, _why(error))
                wait = min(LOOK_SECONDS, left)

    def _is_held(self, since: float) -> None:
        """A request that was sent at `since` has taken or renewed the Lease; -inf: it is not held any more."""
        self.held_until = since + GIVE_UP_SECONDS
        self._on_change()

    async def _release(self, leader_term: int) -> None:
        """So that another needn't wait; if that fails, it waits."""
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                # This process may have been stopped since it renewed: what is another's by now is not even tried.
                await self._look()
                await self._change(leader_term, released)
        except _Lost:
            return
        except (ApiError, TimeoutError) as error:
            _log.warning("%s could not give the Lease back: %s", self._identity, _why(error))

    async def _change(self, leader_term: int, change: Callable[[Record, float], Object]) -> None:
        """Replace the Lease while it is this term's. Raises `_Lost`, ApiError."""
        try:
            await self._replace(change(self._mine(leader_term), self._clock()))
        except ApiError as error:
            if not (error.is_conflict or error.is_not_found):
                raise
            # Another has it; or it's still ours: a label was set, or an earlier request came through unanswered.
            await self._look()
            await self._replace(change(self._mine(leader_term), self._clock()))

    def _mine(self, leader_term: int) -> Record:
        current = self._known
        if current is None or (current.holder, current.transitions) != (self._identity, leader_term):
            raise _Lost
        return current

    async def _look(self) -> None:
        try:
            self._observe(await self._client.get(LEASES, self._namespace, self._name))
        except ApiError as error:
            if not error.is_not_found:
                raise
            self._known = None

    async def _replace(self, lease: Object) -> None:
        self._observe(await self._client.replace(LEASES, self._namespace, self._name, lease))

    def _observe(self, lease: Object) -> None:
        before, self._known = self._known, record(lease)
        # What else changes at a Lease, such as a label, is no sign of its holder's life.
        if before is None or before.lease.get("spec") != lease.get("spec"):
            self._observed_at = time.monotonic()
        self._highest = max(self._highest, self._known.transitions or 0)


class _Lost(Exception):
    """Another holds the Lease, or it was deleted."""


async def stop_work(work: asyncio.Future[None]) -> None:
    """Cancel what leads, and wait for its end."""
    if work.done():
        return
    work.cancel()
    await asyncio.wait([work])
    if not work.cancelled() and (error := work.exception()) is not None:
        _log.error("what led failed while it was stopped", exc_info=error)


def _why(error: Exception) -> str:
    return str(error) or "no answer in time"
