"""Limits on the size of a document: one pass counts its values before other code reads it field by field."""

from muster.api.document import JSON, Path

MAX_DEPTH = 64
"""Depth of nested lists and maps. Deeper ones would overflow the stack of code that walks over them."""

MAX_VALUES = 10_000
"""Texts, numbers, lists and maps together.

Reading a resource takes some microseconds for each of them, and more for one that is wrong; 256 KiB hold 130,000 zeros.
The largest jobs have some thousands of values, most jobs less than a hundred.
"""


SHOWN_STEPS = 8
"""How many steps of a too deep path a message shows: its beginning is enough to find it."""


def extent_objection(value: JSON) -> str | None:
    """Explain why the value is too large to be read; None if it isn't."""
    level, count = [value], 0
    for _ in range(MAX_DEPTH):
        count += len(level)
        if count > MAX_VALUES:
            return f"holds more than {MAX_VALUES} values"
        maps = [item for around in level if isinstance(around, dict) for item in around.values()]
        level = maps + [item for around in level if isinstance(around, list) for item in around]
    return f"nested more than {MAX_DEPTH} levels deep" if level else None


def deep_path(value: JSON) -> Path:
    """Return the beginning of a path that is nested too deeply; () if there is none, or too many values."""
    level: list[tuple[Path, JSON]] = [((), value)]
    count = 0
    for _ in range(MAX_DEPTH):
        count += len(level)
        if count > MAX_VALUES:
            return ()
        level = [((*path, key)[:SHOWN_STEPS], item) for path, around in level for key, item in _entries(around)]
    return level[0][0] if level else ()


def _entries(value: JSON) -> list[tuple[str | int, JSON]]:
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list) else []
