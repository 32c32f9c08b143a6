"""What an agent's loop waits for at one descriptor, changed as often as needed: a selector knows no "nothing"."""

from __future__ import annotations

import selectors
from typing import Callable, List

from muster_worker.agent.state import Event


class Watch:
    """A descriptor's place in the selector; none while nothing is waited for."""

    def __init__(self, selector: selectors.BaseSelector, descriptor: int, handler: Callable[[], List[Event]]) -> None:
        self._selector = selector
        self._descriptor = descriptor
        self._handler = handler
        self._events = 0

    def want(self, events: int) -> None:
        """From now on wait for these events."""
        if events == self._events:
            return
        if not self._events:
            self._selector.register(self._descriptor, events, self._handler)
        elif not events:
            self._selector.unregister(self._descriptor)
        else:
            self._selector.modify(self._descriptor, events, self._handler)
        self._events = events

    def close(self) -> None:
        """Wait for nothing any more; before the descriptor is closed."""
        self.want(0)
