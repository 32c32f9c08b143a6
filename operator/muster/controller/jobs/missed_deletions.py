"""Find resources that were deleted while no watch ran: kopf doesn't report their deletion."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from muster.api.json_fields import read_mapping, read_string
from muster.clients.kubernetes.client import Client, Listing
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.job_source import JOB_IDENTITIES
from muster.objects.kubernetes.kinds import Object

LIST_SECONDS = 300.0
"""The interval between two lists, while the watch has no gap."""

SETTLE_SECONDS = 1.0
"""The delay of a list after a gap: the watch reports many resources at once, but one list is enough."""

RETRY_SECONDS = 10.0
"""The delay before a retry, after a failed list."""

_log = logging.getLogger(__name__)


class KnownResource(Protocol):
    """A resource that the operator has in memory."""

    @property
    def namespace(self) -> str:
        """The namespace of the resource."""

    @property
    def uid(self) -> str:
        """The uid of the resource."""

    @property
    def version(self) -> str:
        """The `resourceVersion` that the operator has."""


@dataclass
class MissedDeletionFinder:
    """Compares the operator's resources with the cluster's, soon after `watch_gap` is set, and at intervals.

    `known_jobs` returns the resources in memory, `remove` removes one of them.
    """

    client: Client
    namespaces: tuple[str, ...]
    known_jobs: Callable[[], Iterable[KnownResource]]
    remove: Callable[[str], None]
    watch_gap: asyncio.Event

    async def run(self) -> None:
        """Compare at intervals, until cancelled."""
        while True:
            try:
                async with asyncio.timeout(LIST_SECONDS):
                    await self.watch_gap.wait()
            except TimeoutError:
                pass
            await asyncio.sleep(SETTLE_SECONDS)
            self.watch_gap.clear()
            try:
                await self._remove_deleted_jobs()
            except ApiError as error:
                _log.warning("listing the jobs, to find deleted ones, failed: %s", error)
                await asyncio.sleep(RETRY_SECONDS)
                self.watch_gap.set()

    async def _remove_deleted_jobs(self) -> None:
        for namespace in self.namespaces or (None,):
            listing = await self.client.list(JOB_IDENTITIES, namespace)
            items = (resource for resource in self.known_jobs() if namespace in (None, resource.namespace))
            for uid in find_deleted_jobs(items, listing):
                self.remove(uid)


def find_deleted_jobs(resources: Iterable[KnownResource], listing: Listing) -> tuple[str, ...]:
    """Return the uids of the resources that the list lacks, except those that are newer than the list."""
    listed_uids = {_get_uid(item) for item in listing.items}
    list_version = int(listing.resource_version)
    return tuple(
        resource.uid
        for resource in resources
        if resource.uid not in listed_uids and int(resource.version) <= list_version
    )


def _get_uid(item: Object) -> str:
    return read_string(read_mapping(item.get("metadata")).get("uid"))
