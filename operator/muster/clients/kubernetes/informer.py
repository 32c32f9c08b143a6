"""List and watch the objects of one kind as long as the process runs."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from http import HTTPStatus

from muster.clients.kubernetes.backoff import backoff_seconds
from muster.clients.kubernetes.client import Change, Client
from muster.clients.kubernetes.object_versions import ObjectVersions, Untracked, object_key, uid_of, version_of
from muster.clients.kubernetes.skipped import SkippedLog
from muster.objects.kubernetes.errors import NO_ANSWER, ApiError
from muster.objects.kubernetes.kinds import Kind, Object
from muster.objects.kubernetes.reading import identity_only, left_out

SILENCE_SECONDS = 150.0
"""After this time without events, the watch restarts: the API server sends a bookmark every minute."""

_log = logging.getLogger(__name__)


class Informer:
    """Lists and watches a kind in some namespaces (empty: all), and reports every change, in order.

    `on_change` gets ADDED, MODIFIED and DELETED, in the event loop; after a gap, a DELETED object may only have
    identifying metadata. `synced` is set once all existing objects have been reported. If a part of an object can't be
    parsed, only its identity is reported, and the problem is logged.

    `versions` creates the record of objects: `Untracked` for kinds with any number of objects, all of which are
    reported again after a gap.
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
        versions: Callable[[], ObjectVersions | Untracked] = ObjectVersions,
        silence_seconds: float = SILENCE_SECONDS,
    ) -> None:
        self.synced = asyncio.Event()
        skipped = SkippedLog(time.monotonic)
        self._feeds = [
            _NamespaceWatch(
                client=client,
                kind=kind,
                namespace=namespace,
                selectors={"labels": labels, "fields": fields},
                silence_seconds=silence_seconds,
                versions=versions(),
                skipped=skipped,
                on_change=on_change,
                on_listed=self._on_listed,
            )
            for namespace in namespaces or (None,)
        ]

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            for feed in self._feeds:
                group.create_task(feed.run())

    def _on_listed(self) -> None:
        if all(feed.was_listed for feed in self._feeds):
            self.synced.set()


@dataclass(kw_only=True)
class _NamespaceWatch:
    """The list and watch of one namespace (None: all). `version_of` "": list next."""

    client: Client
    kind: Kind
    namespace: str | None
    selectors: Mapping[str, str]
    silence_seconds: float
    on_change: Callable[[Change], None]
    on_listed: Callable[[], None]
    versions: ObjectVersions | Untracked
    skipped: SkippedLog
    version: str = ""
    failures: int = 0
    was_listed: bool = False

    async def run(self) -> None:
        while True:
            error = await self._list_and_watch()
            # Not cryptography: it spreads clients that were disconnected together.
            await asyncio.sleep(backoff_seconds(self.failures, error, random.random()))  # noqa: S311
            self.failures += 1

    async def _list_and_watch(self) -> ApiError | None:
        """List and watch until something ends it; return the error, if any. No failure may end the informer."""
        try:
            if not self.version:
                await self._list()
            await self._watch()
        except ApiError as error:
            if not _may_resume(error):
                self.version = ""
            _log.warning("%s: %s; %s again", self._place, error, "watching" if self.version else "listing")
            return error
        except Exception:  # noqa: BLE001 - no failure may end the informer
            self.version = ""
            _log.exception("%s: unexpected error; listing again", self._place)
        return None

    async def _list(self) -> None:
        visited: set[tuple[str, str]] = set()
        reached = ""
        listing = self.client.pages(self.kind, self.namespace, **self.selectors)
        async with aclosing(listing) as pages:
            async for page in pages:
                reached = page.resource_version
                for item in page.items:
                    if self.versions.remembers:
                        visited.add(object_key(item))
                    self._take(Change("ADDED", item))
                    # Let other tasks run between two objects of a long list.
                    await asyncio.sleep(0)
        self._report(self.versions.keep_only(frozenset(visited)))
        self.version = reached
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
                    _log.debug("%s: nothing for %.0f s; watching again", self._place, self.silence_seconds)
                    return
                if change is None:
                    return
                self.failures = 0
                if change.type != "BOOKMARK":
                    self._take(change)
                self.version = version_of(change.object) or self.version

    def _take(self, change: Change) -> None:
        missing = left_out(change.object)
        if missing and "" not in missing:
            change = Change(change.type, self._skipped(change.object, missing))
        self._report(self.versions.take(change))

    def _skipped(self, item: Object, missing: Mapping[str, str]) -> Object:
        """The object's identity; the log explains why the rest is missing."""
        why = "; ".join(f"{path}: {problem}" for path, problem in missing.items())
        self.skipped.log(f"{self.kind.name} {'/'.join(object_key(item))}", uid_of(item), why)
        return identity_only(item, why)

    def _report(self, changes: tuple[Change, ...]) -> None:
        for change in changes:
            try:
                self.on_change(change)
            except Exception:  # noqa: BLE001 - one failing callback must not affect other changes
                _log.exception("%s: the callback for %s %s failed", self._place, change.type, object_key(change.object))

    @property
    def _place(self) -> str:
        return f"{self.kind.plural} in {self.namespace or 'all namespaces'}"


def _may_resume(error: ApiError) -> bool:
    """Whether the watch can resume without losing changes; after any other error, list again."""
    is_cut = error.status == NO_ANSWER and error.reason == "NoAnswer"
    return is_cut or error.status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
