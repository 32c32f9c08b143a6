"""Check the size of a document before other code reads its fields."""

from muster.api.document import JSON, FieldPath

MAX_DEPTH = 64
"""Maximum depth of nested lists and maps. Deeper nesting would overflow the stack of recursive functions."""

MAX_VALUES = 10_000
"""Maximum number of strings, numbers, lists and maps.

The validation of one value takes microseconds, and a document of 256 KiB can hold 130,000 zeros. The largest jobs have
some thousands of values, and most jobs have fewer than a hundred.
"""


MAX_SHOWN_KEYS = 8
"""The number of first keys that a message shows if a path is too deep."""


def find_size_problem(value: JSON) -> str | None:
    """Return a message if the value exceeds a limit, else None."""
    level, count = [value], 0
    for _ in range(MAX_DEPTH):
        count += len(level)
        if count > MAX_VALUES:
            return f"holds more than {MAX_VALUES} values"
        maps = [item for parent in level if isinstance(parent, dict) for item in parent.values()]
        level = maps + [item for parent in level if isinstance(parent, list) for item in parent]
    return f"nested more than {MAX_DEPTH} levels deep" if level else None


def find_deep_path(value: JSON) -> FieldPath:
    """Return the beginning of a path that is too deep; () if there is none, or if there are too many values."""
    level: list[tuple[FieldPath, JSON]] = [((), value)]
    count = 0
    for _ in range(MAX_DEPTH):
        count += len(level)
        if count > MAX_VALUES:
            return ()
        level = [((*path, key)[:MAX_SHOWN_KEYS], item) for path, parent in level for key, item in _list_entries(parent)]
    return level[0][0] if level else ()


def _list_entries(value: JSON) -> list[tuple[str | int, JSON]]:
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list) else []
