"""A descriptor's registration in a selector."""

from __future__ import annotations

import selectors
from typing import Callable, List

from muster_worker.agent.state import Event


class EventRegistration:
    """Registers a descriptor, and unregisters it while the set of events is empty.

    A selector does not accept an empty set (`events=0`).
    """

    def __init__(self, selector: selectors.BaseSelector, descriptor: int, handler: Callable[[], List[Event]]) -> None:
        self._selector = selector
        self._descriptor = descriptor
        self._handler = handler
        self._events = 0

    def set_events(self, events: int) -> None:
        """Set the events to wait for; 0 for none."""
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
