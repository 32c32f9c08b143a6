"""Share the event loop among namespaces: the namespace that has used the least processor time is next."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class ProcessorQueue:
    """Lets one step of one reconcile run at a time. Between two steps, the event loop runs its other tasks.

    Namespaces are scheduled by start-time fair queuing: an idle namespace saves no time. `clock` returns the
    thread's processor time in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._used: dict[str, float] = {}
        self._virtual_time = 0.0
        self._granted: asyncio.Future[None] | None = None
        self._is_scheduled = False

    def acquire(self, namespace: str) -> asyncio.Future[None]:
        """Return a ticket: a future that is done when the caller may run a step.

        Call `release` after the step, or instead of it.
        """
        ticket = asyncio.get_running_loop().create_future()
        if namespace not in self._waiting:
            self._waiting[namespace] = deque()
            self._used[namespace] = max(self._virtual_time, self._used.get(namespace, 0.0))
        self._waiting[namespace].append(ticket)
        self._schedule()
        return ticket

    def release(self, ticket: asyncio.Future[None], namespace: str, seconds: float) -> None:
        """Release a ticket, after a step that used `seconds` of processor time."""
        self._used[namespace] = max(self._virtual_time, self._used.get(namespace, 0.0)) + seconds
        if ticket is self._granted:
            self._granted = None
        else:
            ticket.cancel()
        self._schedule()

    def _schedule(self) -> None:
        if self._granted is None and not self._is_scheduled:
            self._is_scheduled = True
            # Let other ready tasks of the loop run first.
            asyncio.get_running_loop().call_soon(self._grant)

    def _grant(self) -> None:
        self._is_scheduled = False
        while self._waiting and self._granted is None:
            namespace = min(self._waiting, key=self._used.__getitem__)
            tickets = self._waiting[namespace]
            ticket = tickets.popleft()
            if not tickets:
                del self._waiting[namespace]
            if not ticket.done():
                self._virtual_time = self._used[namespace]
                self._granted = ticket
                ticket.set_result(None)
        if self._granted is None:
            # No namespace waits: forget the used time of all.
            self._used.clear()
            self._virtual_time = 0.0
