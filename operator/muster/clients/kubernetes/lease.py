"""Elect a leader: the process that holds the Lease leads."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import time
from collections.abc import Awaitable, Callable

from muster.clients.kubernetes.client import Client
from muster.clients.kubernetes.election import (
    DEFAULT_TIMES,
    LeaseRecord,
    LeaseTimes,
    Step,
    choose_next_step,
    compute_next_leader_term,
    make_acquired_lease,
    make_released_lease,
    make_renewed_lease,
    read_lease,
)
from muster.clients.kubernetes.session import always_true
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import LEASES, Object

REQUEST_SECONDS = 5.0
"""The timeout of a read or a renewal. It is short, so that there is time for another attempt."""

RELEASE_SECONDS = 2.0
"""The timeout of the Lease's release. It is short, because the next process starts only after this one has ended."""

_log = logging.getLogger(__name__)


def make_identity() -> str:
    """Return a unique identity of this process: `<host>_<random>`."""
    return f"{socket.gethostname()}_{secrets.token_hex(4)}"


def ignore_change() -> None:
    """Do nothing: the default of `on_change`."""


class LeaderElector:
    """Acquires a Lease, and runs the leader's work while it holds the Lease.

    The leader term is the Lease's `leaseTransitions`. It increases with every acquisition, even after the Lease was
    deleted (see `compute_next_leader_term`).

    `on_change` is called after each response of the API server, and when the Lease is lost. `is_healthy` is called
    before the Lease is acquired or renewed: an unhealthy process lets it expire.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        *,
        clock: Callable[[], float] = time.time,
        on_change: Callable[[], None] = ignore_change,
        is_healthy: Callable[[], bool] = always_true,
        times: LeaseTimes = DEFAULT_TIMES,
    ) -> None:
        self.held_until = float("-inf")
        """Until this time, in monotonic seconds, no other process can acquire the Lease."""
        self._client = client
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._clock = clock
        self._on_change = on_change
        self._is_healthy = is_healthy
        self._times = times
        self._record: LeaseRecord | None = None
        self._observed_at = 0.0
        self._highest_term = 0

    @property
    def holder(self) -> str | None:
        """The identity of the last observed leader, if any."""
        current = self._record
        if current is None or not current.holder or time.monotonic() >= self._observed_at + current.seconds:
            return None
        return current.holder

    async def run(self, lead: Callable[[int], Awaitable[None]]) -> None:
        """Run `lead(leader_term)` while this process holds the Lease.

        When the Lease is lost, cancel `lead`, wait until it has ended, and acquire the Lease again. Ends when `lead`
        ends or this is cancelled, and then releases the Lease.
        """
        while True:
            leader_term, held_since = await self._acquire()
            _log.info("%s is the leader, leader term %d", self._identity, leader_term)
            self._set_held_since(held_since)
            work = asyncio.ensure_future(lead(leader_term))
            try:
                await self._hold(leader_term, held_since, work)
                if work.done():
                    return work.result()
            finally:
                self._set_held_since(float("-inf"))
                await stop_work(work)
                await self._release(leader_term)
            _log.warning("%s is no longer the leader", self._identity)

    async def _acquire(self) -> tuple[int, float]:
        """Acquire the Lease. Return the leader term and the time of the request."""
        while True:
            try:
                async with asyncio.timeout(REQUEST_SECONDS):
                    await self._read()
                    self._on_change()
                    requested_at = time.monotonic()
                    step = choose_next_step(self._record, self._observed_at, requested_at, self._identity)
                    if step is not Step.WAIT and self._is_healthy():
                        return await self._create_or_replace(step), requested_at
            except (ApiError, TimeoutError) as error:
                _log.warning("%s could not read or acquire the Lease: %s", self._identity, _describe_error(error))
            await asyncio.sleep(self._times.candidate_poll)

    async def _create_or_replace(self, step: Step) -> int:
        now = self._clock()
        leader_term = compute_next_leader_term(self._record, self._highest_term, now)
        lease = make_acquired_lease(
            self._record, self._name, self._identity, leader_term, now, seconds=self._times.lease
        )
        if step is Step.CREATE:
            self._observe(await self._client.create(LEASES, self._namespace, lease))
        else:
            await self._replace(lease)
        return leader_term

    async def _hold(self, leader_term: int, renewed_at: float, work: asyncio.Future[None]) -> None:
        """Renew the Lease until it is lost or the work ends."""
        delay = self._times.renew
        while True:
            await asyncio.wait([work], timeout=delay)
            requested_at = time.monotonic()
            remaining = renewed_at + self._times.give_up - requested_at
            if work.done() or remaining <= 0:
                return
            if not self._is_healthy():
                delay = min(self._times.poll, remaining)
                continue
            try:
                async with asyncio.timeout(min(REQUEST_SECONDS, remaining)):
                    await self._update_own_lease(leader_term, make_renewed_lease)
                renewed_at, delay = requested_at, self._times.renew
                self._set_held_since(renewed_at)
            except _LeaseLost:
                return
            except (ApiError, TimeoutError) as error:
                _log.warning("%s could not renew the Lease: %s", self._identity, _describe_error(error))
                delay = min(self._times.poll, remaining)

    def _set_held_since(self, since: float) -> None:
        """Record that a request at `since` has acquired or renewed the Lease; -inf: the Lease is lost."""
        self.held_until = since + self._times.give_up
        self._on_change()

    async def _release(self, leader_term: int) -> None:
        """Release the Lease, so that another process needn't wait until it expires."""
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                # This process may have been suspended since its last renewal, so another process may hold the Lease.
                await self._read()
                await self._update_own_lease(leader_term, make_released_lease)
        except _LeaseLost:
            return
        except (ApiError, TimeoutError) as error:
            _log.warning("%s could not release the Lease: %s", self._identity, _describe_error(error))

    async def _update_own_lease(self, leader_term: int, change: Callable[[LeaseRecord, float], Object]) -> None:
        """Apply `change` to the Lease, if this process still holds it with this term. Raises `_LeaseLost`, ApiError."""
        try:
            await self._replace(change(self._require_own_record(leader_term), self._clock()))
        except ApiError as error:
            if not (error.is_conflict or error.is_not_found):
                raise
            # The Lease has a new version: another process has acquired it, someone has changed a label, or an earlier
            # request of this process has succeeded although its response was lost.
            await self._read()
            await self._replace(change(self._require_own_record(leader_term), self._clock()))

    def _require_own_record(self, leader_term: int) -> LeaseRecord:
        current = self._record
        if current is None or (current.holder, current.transitions) != (self._identity, leader_term):
            raise _LeaseLost
        return current

    async def _read(self) -> None:
        try:
            self._observe(await self._client.get(LEASES, self._namespace, self._name))
        except ApiError as error:
            if not error.is_not_found:
                raise
            self._record = None

    async def _replace(self, lease: Object) -> None:
        self._observe(await self._client.replace(LEASES, self._namespace, self._name, lease))

    def _observe(self, lease: Object) -> None:
        previous, self._record = self._record, read_lease(lease)
        # Only a change of the spec proves that the holder is alive; a new label doesn't.
        if previous is None or previous.lease.get("spec") != lease.get("spec"):
            self._observed_at = time.monotonic()
        self._highest_term = max(self._highest_term, self._record.transitions or 0)


class _LeaseLost(Exception):
    """Another process holds the Lease, or the Lease was deleted."""


async def stop_work(work: asyncio.Future[None]) -> None:
    """Cancel the leader's work, and wait for its end."""
    if work.done():
        return
    work.cancel()
    await asyncio.wait([work])
    if not work.cancelled() and (error := work.exception()) is not None:
        _log.error("the leader's work failed while it stopped", exc_info=error)


def _describe_error(error: Exception) -> str:
    return str(error) or "timed out"
