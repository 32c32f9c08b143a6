"""Who may compute next in the event loop: of the namespaces whose jobs want to, the one that computed least."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class ProcessorQueue:
    """Lets one step of all turns be made at a time, and the rest of the event loop go on between two of them.

    A namespace that computed much comes after those that computed little, by start-time fair queuing: one that comes
    anew is as far as the one whose step is being made, so that no namespace saves up time. `clock` gives the thread's
    processor time in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._used: dict[str, float] = {}
        self._reached = 0.0
        self._granted: asyncio.Future[None] | None = None
        self._is_due = False

    def ask(self, namespace: str) -> asyncio.Future[None]:
        """Done when a step may be made; `leave` has to be called after it, or instead of it."""
        ticket = asyncio.get_running_loop().create_future()
        if namespace not in self._waiting:
            self._waiting[namespace] = deque()
            self._used[namespace] = max(self._reached, self._used.get(namespace, 0.0))
        self._waiting[namespace].append(ticket)
        self._go_on()
        return ticket

    def leave(self, ticket: asyncio.Future[None], namespace: str, seconds: float) -> None:
        """The step is made, and took so long."""
        self._used[namespace] = max(self._reached, self._used.get(namespace, 0.0)) + seconds
        if ticket is self._granted:
            self._granted = None
        else:
            ticket.cancel()
        self._go_on()

    def _go_on(self) -> None:
        if self._granted is None and not self._is_due:
            self._is_due = True
            # Not at once: whatever else is ready in the loop comes first.
            asyncio.get_running_loop().call_soon(self._grant)

    def _grant(self) -> None:
        self._is_due = False
        while self._waiting and self._granted is None:
            namespace = min(self._waiting, key=self._used.__getitem__)
            tickets = self._waiting[namespace]
            ticket = tickets.popleft()
            if not tickets:
                del self._waiting[namespace]
            if not ticket.done():
                self._reached = self._used[namespace]
                self._granted = ticket
                ticket.set_result(None)
        if self._granted is None:
            # No namespace waits: all have the time that they asked for.
            self._used.clear()
            self._reached = 0.0
