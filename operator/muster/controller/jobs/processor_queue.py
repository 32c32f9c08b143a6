"""Share the event loop among namespaces: the namespace that has used the least processor time is next."""

from __future__ import annotations

import asyncio
import enum
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from muster.controller.jobs.mean_waits import MeanWaits

ITERATION_SECONDS = 0.004
"""The expected processor time of the steps that run in one iteration of the event loop. At least one step runs."""

MAX_ITERATION_SECONDS = 0.03
"""The limit of this time if the loop's other tasks take longer: the steps may use twice their time.

An iteration handles all requests that have arrived. If hundreds of agents report at once, only a few steps would run
in a second.
"""

MAX_ACTION_WAIT_SECONDS = 1.0
"""After this time, a waiting step of a reconcile's actions is no longer behind other reconciles' decisions."""

_OTHERS_FACTOR = 2.0

_ESTIMATE_WEIGHT = 0.1


_Ticket: TypeAlias = tuple[asyncio.Future[None], float]
"""A ticket, and the loop's time at which it was acquired."""


class Stage(enum.Enum):
    """What a step of a reconcile is for.

    If a hundred jobs fail at once, first write the hundred statuses. Each restart then costs ten times a status.
    """

    DECISION = enum.auto()
    """The step is before the write of the status."""

    ACTION = enum.auto()
    """The status is written."""


@dataclass(frozen=True)
class Place:
    """The place of a step among those of its namespace: decisions before actions, and the actions of `job` in order."""

    stage: Stage = Stage.DECISION
    job: int = 0


_FIRST = Place()


@dataclass(frozen=True)
class _WaitingTickets:
    """The tickets of a namespace: decisions with the oldest first, and a heap of actions by job.

    `old_actions` has the actions with the oldest first. An action that is taken from `old_actions` stays in
    the heap, which skips it later because it is done.
    """

    decisions: deque[_Ticket] = field(default_factory=deque)
    actions: list[tuple[int, int, _Ticket]] = field(default_factory=list)
    old_actions: deque[_Ticket] = field(default_factory=deque)
    _sequence: Iterator[int] = field(default_factory=itertools.count)

    def __bool__(self) -> bool:
        return bool(self.decisions or self.actions)

    def append(self, ticket: _Ticket, place: Place) -> None:
        if place.stage is Stage.DECISION:
            self.decisions.append(ticket)
        else:
            heapq.heappush(self.actions, (place.job, next(self._sequence), ticket))
            self.old_actions.append(ticket)

    def pop(self, now: float) -> _Ticket:
        """Remove and return the next ticket, which may be done already."""
        while self.old_actions and self.old_actions[0][0].done():
            self.old_actions.popleft()
        if self.old_actions and now - self.old_actions[0][1] >= MAX_ACTION_WAIT_SECONDS:
            return self.old_actions.popleft()
        if self.decisions:
            return self.decisions.popleft()
        _, _, ticket = heapq.heappop(self.actions)
        return ticket


class ProcessorQueue:
    """Lets a few steps of reconciles run at a time. Then the event loop runs its other tasks.

    It uses start-time fair queuing: an idle namespace does not save time. `clock` returns the
    thread's processor time in seconds. `mean_waits` is how long steps have waited for others of their namespace.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.mean_waits = MeanWaits()
        self._tickets: dict[str, _WaitingTickets] = {}
        self._used_seconds: dict[str, float] = {}
        self._virtual_time = 0.0
        self._granted_tickets: dict[asyncio.Future[None], float] = {}
        self._step_seconds = ITERATION_SECONDS
        self._is_scheduled = False
        self._released_at: float | None = None

    def acquire(self, namespace: str, place: Place = _FIRST) -> asyncio.Future[None]:
        """Return a ticket: a future that is done when the caller may run a step.

        Call `release` after the step, or instead of it.
        """
        loop = asyncio.get_running_loop()
        ticket = loop.create_future()
        if namespace not in self._tickets:
            self._tickets[namespace] = _WaitingTickets()
            self._used_seconds[namespace] = max(self._virtual_time, self._used_seconds.get(namespace, 0.0))
        self._tickets[namespace].append((ticket, loop.time()), place)
        self._schedule()
        return ticket

    def release(self, ticket: asyncio.Future[None], namespace: str, seconds: float) -> None:
        """Release a ticket, after a step that used `seconds` of processor time."""
        estimate = self._granted_tickets.pop(ticket, None)
        if estimate is None:
            ticket.cancel()
            estimate = 0.0
        else:
            self._step_seconds += _ESTIMATE_WEIGHT * (seconds - self._step_seconds)
        used_seconds = max(self._virtual_time, self._used_seconds.get(namespace, 0.0))
        self._used_seconds[namespace] = used_seconds + seconds - estimate
        if not self._granted_tickets:
            self._released_at = asyncio.get_running_loop().time() if self._tickets else None
        self._schedule()

    def _schedule(self) -> None:
        if not self._granted_tickets and not self._is_scheduled:
            self._is_scheduled = True
            # Let other ready tasks of the loop run first.
            asyncio.get_running_loop().call_soon(self._grant)

    def _grant(self) -> None:
        self._is_scheduled = False
        now = asyncio.get_running_loop().time()
        # If steps have been waiting since the last ones ended, other tasks have used this time.
        others_seconds = 0.0 if self._released_at is None else now - self._released_at
        remaining = min(MAX_ITERATION_SECONDS, max(ITERATION_SECONDS, _OTHERS_FACTOR * others_seconds))
        estimate = self._step_seconds
        while self._tickets and (remaining >= estimate or not self._granted_tickets):
            namespace = min(self._tickets, key=self._used_seconds.__getitem__)
            tickets = self._tickets[namespace]
            ticket, acquired_at = tickets.pop(now)
            if not tickets:
                del self._tickets[namespace]
            if not ticket.done():
                self.mean_waits.add(namespace, acquired_at, now)
                self._virtual_time = self._used_seconds[namespace]
                self._used_seconds[namespace] += estimate
                self._granted_tickets[ticket] = estimate
                remaining -= estimate
                ticket.set_result(None)
        if not self._granted_tickets:
            # No namespace waits: forget the used time of all.
            self._used_seconds.clear()
            self._virtual_time = 0.0
