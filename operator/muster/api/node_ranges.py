"""Nodes of a job written as ranges: `0` or `0-3,7`."""


def ranges(text: str) -> tuple[range, ...]:
    """The ranges that `nodes` of a node override names; one that descends is empty. `text` fits the field's pattern."""
    return tuple(_range(part) for part in text.split(","))


def is_among(node: int, text: str) -> bool:
    """Whether `text` names the node."""
    return any(node in part for part in ranges(text))


def _range(part: str) -> range:
    first, _, last = part.partition("-")
    return range(int(first), int(last or first) + 1)
