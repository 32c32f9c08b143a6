"""Frames as server-sent events, encoded outside of the event loop."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from dataclasses import dataclass, field

from muster.cli.board.frame import Frame
from muster.cli.board.frame_json import encode_changes, encode_frame

MAX_EVENTS = 16
"""This many of the last events are kept: several pages that show the same job get the same events."""

MAX_ENCODERS = 2
"""This many events are encoded at a time."""

COMMENT = b": nothing has changed\n\n"


@dataclass
class EventEncoder:
    """Encodes events. A frame is identified by its object, because a source returns the same one until it changes."""

    _events: OrderedDict[tuple[int, int], tuple[Frame | None, Frame, asyncio.Task[bytes]]] = field(
        default_factory=OrderedDict
    )
    _encoders: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_ENCODERS))

    async def encode(self, previous: Frame | None, frame: Frame) -> bytes:
        """Return the event with what has changed since `previous`; None: with the whole frame."""
        key = (id(previous), id(frame))
        if key not in self._events:
            # The frames are kept with the event, so that no others get their ids.
            self._events[key] = (previous, frame, asyncio.create_task(self._encode(previous, frame)))
            if len(self._events) > MAX_EVENTS:
                self._events.popitem(last=False)
        # A stream that ends must not cancel the event of others.
        return await asyncio.shield(self._events[key][2])

    async def _encode(self, previous: Frame | None, frame: Frame) -> bytes:
        async with self._encoders:
            return await asyncio.to_thread(format_event, previous, frame)


def format_event(previous: Frame | None, frame: Frame) -> bytes:
    """Return the event as text."""
    event = encode_frame(frame) if previous is None else encode_changes(previous, frame)
    # json.dumps writes no line breaks, so the event is one line
    return f"data: {json.dumps(event, separators=(',', ':'))}\n\n".encode()
