"""A descriptor's registration in the selector, which does not accept "no events"."""

from __future__ import annotations

import selectors
from typing import Callable, List

from muster_worker.agent.state import Event


class EventRegistration:
    """Registers a descriptor for changing events; unregisters it for none."""

    def __init__(self, selector: selectors.BaseSelector, descriptor: int, handler: Callable[[], List[Event]]) -> None:
        self._selector = selector
        self._descriptor = descriptor
        self._handler = handler
        self._events = 0

    def set_events(self, events: int) -> None:
        """Set the events to wait for."""
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
        """Unregister the descriptor. Call this before closing it."""
        self.set_events(0)
