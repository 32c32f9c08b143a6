"""Validate the regular expressions of metrics: for every Python version, and without catastrophic backtracking."""

import math
import re
import warnings
from dataclasses import dataclass

from muster.api.validation.rules.regex_size import find_size_problem

_QUANTIFIER = re.compile(r"(?P<sign>[*+?])|\{(?P<low>[0-9]*)(?P<comma>,?)(?P<high>[0-9]*)\}")
_HARMLESS_REPETITIONS = 10
"""This many repetitions are harmless, even of a part that varies in length."""

MAX_TIMES = 1000
"""Maximum product of nested counted repetitions: Python tries each repetition, even of an empty match."""


def find_regex_problem(pattern: str) -> str | None:
    """Return why muster rejects a metric's regular expression; None if it is accepted.

    Repeating a part that varies in length can take exponential time on a line that doesn't match, and would block the
    agent. Adjacent repetitions take at most polynomial time, and lines have a maximum length.
    """
    objection = find_size_problem(pattern)
    if objection is not None:
        return objection
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a newer Python in the image may interpret it differently
            groups = re.compile(pattern).groups
    except (re.error, OverflowError, RecursionError, Warning) as error:
        return f"Python's re rejects it ({error})"
    if groups == 0:
        return 'it has no group; put the number in parentheses: "loss=([0-9.]+)"'
    return _find_shape_problem(pattern)


@dataclass
class _Item:
    """A group, or a part of one.

    `ways` is how often a part of varying length is repeated, 0 if no part varies. `times` is the largest number of
    counted repetitions.
    """

    ways: int = 0
    times: int = 1

    def take(self, other: "_Item") -> None:
        self.ways, self.times = max(self.ways, other.ways), max(self.times, other.times)


def _find_shape_problem(pattern: str) -> str | None:
    """Check the groups and quantifiers of a pattern that compiles."""
    groups = [_Item()]
    position = 0
    while position < len(pattern):
        if pattern.startswith("(?>", position):
            return "atomic groups need Python 3.11 in the image; use (?:...)"
        item, position = _read_item(pattern, position, groups)
        if item is None:
            continue
        quantifier = _QUANTIFIER.match(pattern, position)
        if quantifier is not None:
            position = quantifier.end()
            if pattern.startswith("+", position):
                return "possessive quantifiers need Python 3.11 in the image; use a plain one"
            objection = _repeat(item, *_quantifier_limits(quantifier))
            if objection is not None:
                return objection
            position += pattern.startswith("?", position)
        groups[-1].take(item)
    return None


def _repeat(item: _Item, low: int, high: float) -> str | None:
    """Apply a quantifier to the item, `low` to `high` times; return the problem with it."""
    if item.ways and item.ways * high > _HARMLESS_REPETITIONS:
        return (
            "a repetition of something that varies in length, like (a+)+ or (a|b)*, can run forever on a line that"
            " doesn't match; leave out what is around the number: the expression is searched for anywhere in a line"
        )
    counted = 1 if math.isinf(high) else int(high)
    if item.times * counted > MAX_TIMES:
        return f"its counts repeat something more than {MAX_TIMES} times; use + or * instead of a count"
    item.take(_Item(max(item.ways * counted, int(low != high)), item.times * counted))
    return None


def _quantifier_limits(quantifier: re.Match[str]) -> tuple[int, float]:
    sign = quantifier["sign"]
    if sign is not None:
        return int(sign == "+"), 1 if sign == "?" else math.inf
    low = int(quantifier["low"] or 0)
    if not quantifier["comma"]:
        return low, low
    return low, int(quantifier["high"]) if quantifier["high"] else math.inf


def _read_item(pattern: str, position: int, groups: list[_Item]) -> tuple[_Item | None, int]:
    """Read one item; return it (None if it is incomplete) and the next position."""
    char = pattern[position]
    if char == "(":
        groups.append(_Item())
        # skip the ? of (?: or (?P<name>, which is not a quantifier
        return None, position + (2 if pattern.startswith("(?", position) else 1)
    if char == ")":
        return groups.pop(), position + 1
    if char == "|":
        groups[-1].take(_Item(ways=1))
        return None, position + 1
    if char == "\\":
        return _Item(), position + 2
    if char == "[":
        return _Item(), _class_end(pattern, position)
    return _Item(), position + 1


def _class_end(pattern: str, start: int) -> int:
    position = start + 1
    position += pattern.startswith("^", position)
    position += pattern.startswith("]", position)  # a ] at the beginning is a member
    while pattern[position] != "]":
        position += 2 if pattern[position] == "\\" else 1
    return position + 1
