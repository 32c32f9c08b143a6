"""Python's search for garbage. It takes a sixth of the time of a short command, which leaves no garbage to find."""

from __future__ import annotations

import atexit
import gc

_THRESHOLD = 100_000
"""A command that only reads a job creates fewer objects than this."""

_DEFAULT_THRESHOLDS = gc.get_threshold()


def postpone_collections() -> None:
    """Search for garbage only after many new objects, and not at the end of the process, which frees its memory."""
    gc.set_threshold(_THRESHOLD)
    atexit.register(gc.freeze)


def resume_collections() -> None:
    """Search for garbage as often as Python does by default, in a process that runs for hours."""
    gc.set_threshold(*_DEFAULT_THRESHOLDS)
