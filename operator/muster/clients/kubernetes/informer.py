"""List and watch the objects of one kind, like client-go's informer."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from http import HTTPStatus

from muster.clients.kubernetes.backoff import compute_backoff_seconds
from muster.clients.kubernetes.client import Change, Client
from muster.clients.kubernetes.object_versions import (
    NoObjectVersions,
    ObjectVersions,
    get_object_key,
    get_uid,
    get_version,
)
from muster.clients.kubernetes.skipped import SkippedLog
from muster.objects.kubernetes.errors import NO_RESPONSE, ApiError
from muster.objects.kubernetes.kinds import Kind, Object
from muster.objects.kubernetes.object_parser import keep_identity, read_missing_parts

SILENCE_SECONDS = 150.0
"""A watch without events for this long is restarted: the API server sends a bookmark every minute."""

_log = logging.getLogger(__name__)


class Informer:
    """Lists and watches a kind in some namespaces (empty: all), and reports every change, in order.

    `on_change` gets ADDED, MODIFIED and DELETED, in the event loop. After a gap in the watch, a DELETED object may have
    only the metadata that identifies it. `synced` is set once all existing objects have been reported. If a part of an
    object can't be parsed, only its identity is reported, and the problem is logged.

    `versions` creates the record of known objects. Use `NoObjectVersions` for kinds whose number of objects has no
    limit: after a gap in the watch, the informer reports all of them again.
    """

    def __init__(
        self,
        client: Client,
        kind: Kind,
        namespaces: tuple[str, ...],
        on_change: Callable[[Change], None],
        *,
        labels: str = "",
        fields: str = "",
        versions: Callable[[], ObjectVersions | NoObjectVersions] = ObjectVersions,
        silence_seconds: float = SILENCE_SECONDS,
    ) -> None:
        self.synced = asyncio.Event()
        skipped_log = SkippedLog(time.monotonic)
        self._watches = [
            _NamespaceWatch(
                client=client,
                kind=kind,
                namespace=namespace,
                selectors={"labels": labels, "fields": fields},
                silence_seconds=silence_seconds,
                versions=versions(),
                skipped_log=skipped_log,
                on_change=on_change,
                on_listed=self._on_listed,
            )
            for namespace in namespaces or (None,)
        ]

    async def run(self) -> None:
        """List and watch, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for watch in self._watches:
                group.create_task(watch.run())

    def _on_listed(self) -> None:
        if all(watch.was_listed for watch in self._watches):
            self.synced.set()


@dataclass(kw_only=True)
class _NamespaceWatch:
    """The list and watch of one namespace (None: all). `version` is "" if the next request is a list."""

    client: Client
    kind: Kind
    namespace: str | None
    selectors: Mapping[str, str]
    silence_seconds: float
    on_change: Callable[[Change], None]
    on_listed: Callable[[], None]
    versions: ObjectVersions | NoObjectVersions
    skipped_log: SkippedLog
    version: str = ""
    failures: int = 0
    was_listed: bool = False

    async def run(self) -> None:
        while True:
            error = await self._list_and_watch()
            # Not for cryptography: the jitter spreads clients that were disconnected together.
            await asyncio.sleep(compute_backoff_seconds(self.failures, error, random.random()))  # noqa: S311
            self.failures += 1

    async def _list_and_watch(self) -> ApiError | None:
        """List and watch until an error or a timeout; return the API server's error, if any."""
        try:
            if not self.version:
                await self._list()
            await self._watch()
        except ApiError as error:
            if not _may_resume(error):
                self.version = ""
            _log.warning("%s: %s; %s again", self._scope, error, "watching" if self.version else "listing")
            return error
        except Exception:  # noqa: BLE001 - no failure may end the informer
            self.version = ""
            _log.exception("%s: unexpected error; listing again", self._scope)
        return None

    async def _list(self) -> None:
        listed_keys: set[tuple[str, str]] = set()
        version = ""
        listing = self.client.list_pages(self.kind, self.namespace, **self.selectors)
        async with aclosing(listing) as pages:
            async for page in pages:
                version = page.resource_version
                for item in page.items:
                    if self.versions.stores_versions:
                        listed_keys.add(get_object_key(item))
                    self._take(Change("ADDED", item))
                    # Let other tasks run between two objects of a long list.
                    await asyncio.sleep(0)
        self._report(self.versions.keep_only(frozenset(listed_keys)))
        self.version = version
        self.was_listed = True
        self.on_listed()

    async def _watch(self) -> None:
        watch = self.client.watch(self.kind, self.namespace, resource_version=self.version, **self.selectors)
        async with aclosing(watch) as changes:
            while True:
                try:
                    async with asyncio.timeout(self.silence_seconds):
                        change = await anext(changes, None)
                except TimeoutError:
                    # normal for a kind without bookmarks, such as Events
                    _log.debug("%s: no event for %.0f s; watching again", self._scope, self.silence_seconds)
                    return
                if change is None:
                    return
                self.failures = 0
                if change.type != "BOOKMARK":
                    self._take(change)
                self.version = get_version(change.object) or self.version

    def _take(self, change: Change) -> None:
        missing = read_missing_parts(change.object)
        if missing and "" not in missing:
            change = Change(change.type, self._skip_content(change.object, missing))
        self._report(self.versions.record(change))

    def _skip_content(self, item: Object, missing_parts: Mapping[str, str]) -> Object:
        """Return an object with only the identity of `item`, and log why the rest is missing."""
        reason = "; ".join(f"{path}: {problem}" for path, problem in missing_parts.items())
        self.skipped_log.log(f"{self.kind.name} {'/'.join(get_object_key(item))}", get_uid(item), reason)
        return keep_identity(item, reason)

    def _report(self, changes: tuple[Change, ...]) -> None:
        for change in changes:
            try:
                self.on_change(change)
            except Exception:  # noqa: BLE001 - one failing callback must not affect other changes
                _log.exception(
                    "%s: the callback for %s %s failed", self._scope, change.type, get_object_key(change.object)
                )

    @property
    def _scope(self) -> str:
        return f"{self.kind.plural} in {self.namespace or 'all namespaces'}"


def _may_resume(error: ApiError) -> bool:
    """Whether the watch can resume at its version. After any other error, list again."""
    is_disconnected = error.status == NO_RESPONSE and error.reason == "NoAnswer"
    return is_disconnected or error.status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
