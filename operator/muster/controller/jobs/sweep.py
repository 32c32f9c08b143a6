"""Finds resources that were deleted while no watch ran: kopf reports none of those."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from muster.api.json_fields import mapping, string
from muster.clients.kubernetes.client import Client, Listing
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.job_source import JOB_IDENTITIES
from muster.objects.kubernetes.kinds import Object

SWEEP_SECONDS = 300.0
"""How often, when nothing points to a gap."""

SETTLE_SECONDS = 1.0
"""After a gap all resources are told at once: one look serves for them all."""

RETRY_SECONDS = 10.0
"""Seconds until the next try after a list that failed."""

_log = logging.getLogger(__name__)


class Held(Protocol):
    """A version of a resource that something is held of."""

    @property
    def namespace(self) -> str:
        """Where it is."""

    @property
    def uid(self) -> str:
        """Which it is."""

    @property
    def version(self) -> str:
        """As of when."""


@dataclass
class Sweep:
    """Compares the known resources with those that there are, soon when `gap` is set.

    `known` gives the resources that something is held of, `drop` is that of `Jobs`.
    """

    client: Client
    namespaces: tuple[str, ...]
    known_jobs: Callable[[], Iterable[Held]]
    drop: Callable[[str], None]
    gap: asyncio.Event

    async def run(self) -> None:
        """Look now and then, for ever."""
        while True:
            try:
                async with asyncio.timeout(SWEEP_SECONDS):
                    await self.gap.wait()
            except TimeoutError:
                pass
            await asyncio.sleep(SETTLE_SECONDS)
            self.gap.clear()
            try:
                await self._look()
            except ApiError as error:
                _log.warning("the jobs could not be listed, to see which are gone: %s", error)
                await asyncio.sleep(RETRY_SECONDS)
                self.gap.set()

    async def _look(self) -> None:
        for namespace in self.namespaces or (None,):
            listing = await self.client.list(JOB_IDENTITIES, namespace)
            items = (resource for resource in self.known_jobs() if namespace in (None, resource.namespace))
            for uid in vanished(items, listing):
                self.drop(uid)


def vanished(allowed: Iterable[Held], listing: Listing) -> tuple[str, ...]:
    """The uids that are known and not listed; one that is newer than the list may well be there."""
    there = {_uid(item) for item in listing.items}
    as_of = int(listing.resource_version)
    return tuple(resource.uid for resource in allowed if resource.uid not in there and int(resource.version) <= as_of)


def _uid(item: Object) -> str:
    return string(mapping(item.get("metadata")).get("uid"))
