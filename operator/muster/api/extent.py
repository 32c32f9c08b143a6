"""How much a document may hold: one pass counts it, before the code that reads it field by field."""

from muster.api.document import JSON, Path

MAX_DEPTH = 64
"""Of lists and maps within one another. Deeper ones would exhaust the stacks of those who walk over them."""

MAX_VALUES = 10_000
"""Texts, numbers, lists and maps together. What reads a resource takes some microseconds for each of them, and more
for one that is wrong; 256 KiB hold 130,000 zeros. The largest jobs have some thousands, most less than a hundred."""


SHOWN_STEPS = 8
"""Of the way to what is too deep: who wrote it finds it by its beginning."""


def extent_objection(value: JSON) -> str | None:
    """Why the value holds too much to be read; None when it doesn't."""
    level, count = [value], 0
    for _ in range(MAX_DEPTH):
        count += len(level)
        if count > MAX_VALUES:
            return f"holds more than {MAX_VALUES} values"
        maps = [item for around in level if isinstance(around, dict) for item in around.values()]
        level = maps + [item for around in level if isinstance(around, list) for item in around]
    return f"nested more than {MAX_DEPTH} levels deep" if level else None


def deep_path(value: JSON) -> Path:
    """How the way to something begins that is nested too deep; () where nothing is, or there are too many values."""
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
