"""Queue the changes of jobs' resources, and read them one at a time. Namespaces take turns."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from muster.api.json_fields import read_mapping, read_string
from muster.clients.kubernetes.client import Change
from muster.controller.jobs.processor_queue import ProcessorQueue

_log = logging.getLogger(__name__)


class ChangeQueue:
    """Passes changes to `handle`.

    Reading a large job takes 0.1 s, and hundreds of changes may arrive at once. The queue has only the newest change of
    a resource. It reads a namespace's changes in the order of their arrival.
    """

    def __init__(self, processor: ProcessorQueue, handle: Callable[[Change], None]) -> None:
        self._processor = processor
        self._handle = handle
        self._queued_changes: dict[str, dict[str, Change]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def put(self, change: Change) -> None:
        """Queue a change."""
        metadata = read_mapping(change.object.get("metadata"))
        namespace, uid = read_string(metadata.get("namespace")), read_string(metadata.get("uid"))
        queued_changes = self._queued_changes.setdefault(namespace, {})
        queued_changes[uid] = _merge_changes(queued_changes.get(uid), change)
        if namespace not in self._tasks:
            self._tasks[namespace] = asyncio.create_task(self._read_all(namespace), name=f"changes of {namespace}")

    def close(self) -> None:
        """Stop, and drop all queued changes."""
        for task in self._tasks.values():
            task.cancel()

    async def _read_all(self, namespace: str) -> None:
        queued_changes = self._queued_changes[namespace]
        try:
            while queued_changes:
                await self._read_first(namespace, queued_changes)
        finally:
            del self._queued_changes[namespace], self._tasks[namespace]

    async def _read_first(self, namespace: str, queued_changes: dict[str, Change]) -> None:
        clock = self._processor.clock
        ticket, seconds = self._processor.acquire(namespace), 0.0
        try:
            await ticket
            change, started_at = queued_changes.pop(next(iter(queued_changes))), clock()
            try:
                self._handle(change)
            except Exception:  # noqa: BLE001 - logged below
                # A bug in reading one job must not stop the others.
                _log.warning("a job of namespace %s could not be read", namespace, exc_info=True)
            seconds = clock() - started_at
        finally:
            self._processor.release(ticket, namespace, seconds)


def _merge_changes(previous: Change | None, change: Change) -> Change:
    """Merge two changes of a resource: ADDED and MODIFIED become ADDED, with the newest object."""
    if previous is not None and previous.type == "ADDED" and change.type == "MODIFIED":
        return Change("ADDED", change.object)
    return change
