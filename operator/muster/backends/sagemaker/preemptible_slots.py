"""Limit concurrent work fairly: owners take turns, and a long turn ends when another owner waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count


class SlotPreempted(Exception):
    """The turn's guaranteed time is over, and another owner waits."""


@dataclass(eq=False)
class _Turn:
    """One turn. `limit` can end it; `guaranteed_until` is the end of its guaranteed time (the loop's clock)."""

    owner: str
    host: str
    start: asyncio.Future[None]
    limit: asyncio.Timeout
    guaranteed_until: float = 0.0
    is_entered: bool = False
    is_preempted: bool = False


class PreemptibleSlots:
    """Allows at most `at_once` concurrent turns. Each owner has at most one, and at most half have the same host.

    Owners with many jobs get no more turns than others. A turn is guaranteed `guaranteed_seconds`, and then continues
    until another owner waits for its slot. Only one event loop may use this.
    """

    def __init__(self, at_once: int, guaranteed_seconds: float) -> None:
        self._at_once = at_once
        self._max_per_host = max(1, at_once // 2)
        self._guaranteed_seconds = guaranteed_seconds
        self._waiting_turns: list[_Turn] = []
        self._running_turns: list[_Turn] = []
        self._last: dict[str, int] = {}
        self._sequence = count(1)
        self._preemption_timer: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def turn(self, owner: str, host: str = "") -> AsyncIterator[None]:
        """Wait for a turn, which lasts until the `with` block ends; `host` "": no limit by host.

        Raises `SlotPreempted` when the turn's guaranteed time is over and another owner waits.
        """
        turn = _Turn(owner, host, asyncio.get_running_loop().create_future(), asyncio.timeout(None))
        self._waiting_turns.append(turn)
        self._start_next()
        try:
            await turn.start
            async with turn.limit:
                turn.is_entered = True
                self._start_next()
                yield
        except TimeoutError:
            if turn.is_preempted and turn.limit.expired():
                raise SlotPreempted from None
            raise
        finally:
            # a cancelled turn may not have started
            (self._running_turns if turn in self._running_turns else self._waiting_turns).remove(turn)
            self._forget(owner)
            self._start_next()

    def _start_next(self) -> None:
        now = asyncio.get_running_loop().time()
        while len(self._running_turns) < self._at_once:
            free = [turn for turn in self._waiting_turns if self._is_free(turn)]
            if not free:
                break
            # choose an owner without an earlier turn, or else the owner whose last turn is the longest ago
            next_turn = min(free, key=lambda turn: self._last.get(turn.owner, 0))
            self._waiting_turns.remove(next_turn)
            self._running_turns.append(next_turn)
            self._last[next_turn.owner] = next(self._sequence)
            next_turn.guaranteed_until = now + self._guaranteed_seconds
            next_turn.start.set_result(None)
        self._preempt(now)

    def _preempt(self, now: float) -> None:
        """End the longest turn, if its guaranteed time is over and another owner waits for its slot."""
        if self._preemption_timer is not None:
            self._preemption_timer.cancel()
            self._preemption_timer = None
        blocking = [
            turn for turn in self._running_turns if any(self._waits_for(other, turn) for other in self._waiting_turns)
        ]
        # preempt only one turn at a time: wait for its end
        if any(turn.is_preempted for turn in blocking):
            return
        entered = (turn for turn in blocking if turn.is_entered)
        longest = min(entered, key=lambda turn: turn.guaranteed_until, default=None)
        if longest is None:
            return
        if now >= longest.guaranteed_until:
            longest.is_preempted = True
            longest.limit.reschedule(now)
        else:
            self._preemption_timer = asyncio.get_running_loop().call_at(longest.guaranteed_until, self._start_next)

    def _waits_for(self, waiting: _Turn, other: _Turn) -> bool:
        """Whether `waiting` could start if `other` ended."""
        if waiting.start.done() or waiting.owner == other.owner:
            return False
        remaining = [turn for turn in self._running_turns if turn is not other]
        return self._fits(waiting, remaining)

    def _is_free(self, turn: _Turn) -> bool:
        return not turn.start.done() and self._fits(turn, self._running_turns)

    def _fits(self, turn: _Turn, running: list[_Turn]) -> bool:
        if any(other.owner == turn.owner for other in running):
            return False
        same_host = sum(other.host == turn.host for other in running) if turn.host else 0
        return len(running) < self._at_once and same_host < self._max_per_host

    def _forget(self, owner: str) -> None:
        """Forget the last turn of an owner that neither runs nor waits."""
        if not any(turn.owner == owner for turn in (*self._waiting_turns, *self._running_turns)):
            self._last.pop(owner, None)
