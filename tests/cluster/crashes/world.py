"""All events of the API server about jobs and their objects, in order and from the beginning."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from muster.clients.kubernetes.client import Change, Client
from muster.clients.kubernetes.informer import Informer
from muster.objects.kubernetes.kinds import CONFIG_MAPS, EVENTS, JOBS, PODS, SERVICES, Kind

OF_JOBS = "involvedObject.kind=DistributedTrainingJob"
LABEL = "muster.dev/job"
NODE_LABEL = "muster.dev/node"


@dataclass
class ObservedJob:
    """The history of a job: all statuses, the events by reason, and its current objects.

    `pods` has the uids of all pods that a node ever had, `present` those of now; `twins` lists nodes with several pods
    at a time.
    """

    statuses: list[dict[str, Any]] = field(default_factory=list)
    events: list[tuple[str, str]] = field(default_factory=list)
    pods: dict[str, set[str]] = field(default_factory=dict)
    present: dict[str, set[str]] = field(default_factory=dict)
    twins: list[str] = field(default_factory=list)
    there: set[str] = field(default_factory=set)
    exists: bool = False
    messages: list[str] = field(default_factory=list)

    @property
    def status(self) -> dict[str, Any]:
        """Return the last status."""
        return self.statuses[-1] if self.statuses else {}

    @property
    def phase(self) -> str:
        """The phase of the last status."""
        return str(self.status.get("phase", ""))


@dataclass
class World:
    """Jobs by name. A name is unique across namespaces."""

    jobs: dict[str, ObservedJob] = field(default_factory=dict)
    _changed: dict[str, asyncio.Event] = field(default_factory=dict)

    def of(self, job: str) -> ObservedJob:
        """Return the history of a job."""
        return self.jobs.setdefault(job, ObservedJob())

    def stir(self, job: str) -> None:
        """Wake waiting callers after a change."""
        self._changed.setdefault(job, asyncio.Event()).set()

    async def until(self, job: str, holds: Callable[[ObservedJob], bool], seconds: float) -> bool:
        """Whether the condition becomes true within this many seconds."""
        changed = self._changed.setdefault(job, asyncio.Event())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not holds(self.of(job)):
                    changed.clear()
                    await changed.wait()
        return holds(self.of(job))

    @contextlib.asynccontextmanager
    async def watched(self, client: Client, namespaces: tuple[str, ...]) -> AsyncIterator[None]:
        """Watch these namespaces inside the block."""
        informers = [
            Informer(client, JOBS, namespaces, self._job),
            Informer(client, EVENTS, namespaces, self._event, fields=OF_JOBS),
            *(Informer(client, kind, namespaces, self._child(kind), labels=LABEL) for kind in (PODS, SERVICES)),
            Informer(client, CONFIG_MAPS, namespaces, self._child(CONFIG_MAPS), labels=LABEL),
        ]
        tasks = [asyncio.create_task(informer.run()) for informer in informers]
        try:
            for informer in informers:
                await informer.synced.wait()
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _job(self, change: Change) -> None:
        source: Any = change.object
        name = source["metadata"]["name"]
        seen = self.of(name)
        seen.exists = change.type != "DELETED"
        if seen.exists and source.get("status", {}) != seen.status:
            seen.statuses.append(source["status"])
        self.stir(name)

    def _event(self, change: Change) -> None:
        source: Any = change.object
        name = source["involvedObject"]["name"]
        if change.type == "ADDED":
            self.of(name).events.append((source["type"], source["reason"]))
            self.of(name).messages.append(source["message"])
        self.stir(name)

    def _child(self, kind: Kind) -> Callable[[Change], None]:
        def hear(change: Change) -> None:
            source: Any = change.object
            metadata = source["metadata"]
            job = metadata["labels"][LABEL]
            seen, child = self.of(job), f"{kind.name} {metadata['name'].removeprefix(job)}"
            if kind is PODS:
                _count(seen, metadata["labels"][NODE_LABEL], metadata["uid"], change)
            if change.type == "DELETED":
                seen.there.discard(child)
            else:
                seen.there.add(child)
            self.stir(job)

        return hear


def _count(seen: ObservedJob, node: str, uid: str, change: Change) -> None:
    present = seen.present.setdefault(node, set())
    if change.type == "DELETED":
        present.discard(uid)
        return
    seen.pods.setdefault(node, set()).add(uid)
    if present - {uid} and uid not in present:
        seen.twins.append(f"node {node} had {len(present) + 1} pods at once")
    present.add(uid)
