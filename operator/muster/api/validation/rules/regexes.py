"""Check that metrics' regular expressions work in every Python version and backtrack little."""

import math
import re
import warnings
from dataclasses import dataclass

from muster.api.validation.rules.regex_size import find_size_problem

_QUANTIFIER = re.compile(r"(?P<sign>[*+?])|\{(?P<low>[0-9]*)(?P<comma>,?)(?P<high>[0-9]*)\}")
_MAX_REPETITIONS = 10
"""Maximum number of repetitions of a part that varies in length."""

MAX_COUNTED_REPETITIONS = 1000
"""Maximum product of nested counted repetitions. Python tries each repetition, even of an empty match."""


def find_regex_problem(pattern: str) -> str | None:
    """Return why muster rejects a metric's regular expression; None if muster accepts it.

    A repeated part that varies in length can take exponential time on a line that doesn't match, and block the
    agent. Adjacent repetitions take only polynomial time, and lines have a maximum length.
    """
    problem = find_size_problem(pattern)
    if problem is not None:
        return problem
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # newer Python versions may interpret the expression differently
            groups = re.compile(pattern).groups
    except (re.error, OverflowError, RecursionError, Warning) as error:
        return f"Python's re rejects it ({error})"
    if groups == 0:
        return 'it has no group; put the number in parentheses: "loss=([0-9.]+)"'
    return _find_structure_problem(pattern)


@dataclass
class _Item:
    """A group or a part of a group.

    `variable_repetitions` is how often a part of varying length is repeated; 0 if no part varies in length.
    `counted_repetitions` is the largest product of nested counts.
    """

    variable_repetitions: int = 0
    counted_repetitions: int = 1

    def include(self, other: "_Item") -> None:
        self.variable_repetitions, self.counted_repetitions = (
            max(self.variable_repetitions, other.variable_repetitions),
            max(self.counted_repetitions, other.counted_repetitions),
        )


def _find_structure_problem(pattern: str) -> str | None:
    """Return a problem with the groups and quantifiers of a pattern that compiles, or None."""
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
            problem = _apply_quantifier(item, *_parse_quantifier(quantifier))
            if problem is not None:
                return problem
            position += pattern.startswith("?", position)
        groups[-1].include(item)
    return None


def _apply_quantifier(item: _Item, low: int, high: float) -> str | None:
    """Apply a quantifier (`low` to `high` times) to the item; return a problem with it, or None."""
    if item.variable_repetitions and item.variable_repetitions * high > _MAX_REPETITIONS:
        return (
            "a repetition of a part that varies in length, like (a+)+ or (a|b)*, can run forever on a line that"
            " doesn't match; shorten the expression, which may match anywhere in a line"
        )
    count = 1 if math.isinf(high) else int(high)
    if item.counted_repetitions * count > MAX_COUNTED_REPETITIONS:
        return f"its counts repeat a part more than {MAX_COUNTED_REPETITIONS} times; use + or * instead of a count"
    item.include(_Item(max(item.variable_repetitions * count, int(low != high)), item.counted_repetitions * count))
    return None


def _parse_quantifier(quantifier: re.Match[str]) -> tuple[int, float]:
    sign = quantifier["sign"]
    if sign is not None:
        return int(sign == "+"), 1 if sign == "?" else math.inf
    low = int(quantifier["low"] or 0)
    if not quantifier["comma"]:
        return low, low
    return low, int(quantifier["high"]) if quantifier["high"] else math.inf


def _read_item(pattern: str, position: int, groups: list[_Item]) -> tuple[_Item | None, int]:
    """Return the item at `position` (None if it is incomplete) and the position after it."""
    char = pattern[position]
    if char == "(":
        groups.append(_Item())
        # Skip the ? of (?: or (?P<name>, which is not a quantifier.
        return None, position + (2 if pattern.startswith("(?", position) else 1)
    if char == ")":
        return groups.pop(), position + 1
    if char == "|":
        groups[-1].include(_Item(variable_repetitions=1))
        return None, position + 1
    if char == "\\":
        return _Item(), position + 2
    if char == "[":
        return _Item(), _find_class_end(pattern, position)
    return _Item(), position + 1


def _find_class_end(pattern: str, start: int) -> int:
    position = start + 1
    position += pattern.startswith("^", position)
    position += pattern.startswith("]", position)  # a ] at the beginning is a member
    while pattern[position] != "]":
        position += 2 if pattern[position] == "\\" else 1
    return position + 1
