"""What is heard of jobs' resources, read one at a time, each in its namespace's turn of the event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from muster.api.json_fields import mapping, string
from muster.clients.kubernetes.client import Change
from muster.controller.jobs.processor_queue import ProcessorQueue

_log = logging.getLogger(__name__)


class Inbox:
    """Passes changes on to `hear`, which reads them.

    To read a large job takes a tenth of a second, and hundreds of them may arrive at once. Of a resource only the
    newest change waits. Those of a namespace are passed on in the order in which they came.
    """

    def __init__(self, processor: ProcessorQueue, hear: Callable[[Change], None]) -> None:
        self._processor = processor
        self._hear = hear
        self._waiting: dict[str, dict[str, Change]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def put(self, change: Change) -> None:
        """Have it read as soon as it is the namespace's turn."""
        metadata = mapping(change.object.get("metadata"))
        namespace, uid = string(metadata.get("namespace")), string(metadata.get("uid"))
        waiting = self._waiting.setdefault(namespace, {})
        waiting[uid] = _with_former(waiting.get(uid), change)
        if namespace not in self._tasks:
            self._tasks[namespace] = asyncio.create_task(self._pass_on(namespace), name=f"inbox of {namespace}")

    def close(self) -> None:
        """Pass nothing on any more."""
        for task in self._tasks.values():
            task.cancel()

    async def _pass_on(self, namespace: str) -> None:
        waiting = self._waiting[namespace]
        try:
            while waiting:
                await self._pass_on_first(namespace, waiting)
        finally:
            del self._waiting[namespace], self._tasks[namespace]

    async def _pass_on_first(self, namespace: str, waiting: dict[str, Change]) -> None:
        clock = self._processor.clock
        ticket, took = self._processor.ask(namespace), 0.0
        try:
            await ticket
            change, began = waiting.pop(next(iter(waiting))), clock()
            try:
                self._hear(change)
            except Exception:  # noqa: BLE001 - as in a turn: the log has all of it
                # A mistake in the reading of one job must not keep the others from being read.
                _log.warning("a job of namespace %s could not be read", namespace, exc_info=True)
            took = clock() - began
        finally:
            self._processor.leave(ticket, namespace, took)


def _with_former(former: Change | None, change: Change) -> Change:
    """The change that stands for both: a resource that is new stays new, though it has changed since."""
    if former is not None and former.type == "ADDED" and change.type == "MODIFIED":
        return Change("ADDED", change.object)
    return change
