"""Which regular expressions may read a metric: valid in every Python an image may bring, and not able to explode."""

import math
import re
import warnings
from dataclasses import dataclass

from muster.api.validation.rules.regex_size import size_objection

_QUANTIFIER = re.compile(r"(?P<sign>[*+?])|\{(?P<low>[0-9]*)(?P<comma>,?)(?P<high>[0-9]*)\}")
_FEW = 10
"""Repetitions that can't add up to much, whatever varies inside."""

MAX_TIMES = 1000
"""How often a repetition with a number may ask for its item, those around it counted in: no line is longer, and of
what is empty Python matches each one."""


def objection(pattern: str) -> str | None:
    """What speaks against a metric's regular expression; None when nothing does.

    A repetition of something that varies in length takes time exponential in a line's length when the line doesn't
    match, and would stop the agent. Repetitions side by side are at worst polynomial, and lines are bounded.
    """
    objection = size_objection(pattern)
    if objection is not None:
        return objection
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # what Python warns of today means something else in the image's tomorrow
            groups = re.compile(pattern).groups
    except (re.error, OverflowError, RecursionError, Warning) as error:
        return f"Python's re refuses it ({error})"
    if groups == 0:
        return 'it has no group; put the number in parentheses: "loss=([0-9.]+)"'
    return _shape_objection(pattern)


@dataclass
class _Item:
    """A group, or a part of one. `ways` is how often what varies in length is repeated (0: nothing varies).

    `times` is how often anything is repeated by a number.
    """

    ways: int = 0
    times: int = 1

    def take(self, other: "_Item") -> None:
        self.ways, self.times = max(self.ways, other.ways), max(self.times, other.times)


def _shape_objection(pattern: str) -> str | None:
    """Walk the pattern's groups and quantifiers; it is known to compile."""
    groups = [_Item()]
    position = 0
    while position < len(pattern):
        if pattern.startswith("(?>", position):
            return "atomic groups need Python 3.11 in the image; use (?:...)"
        item, position = _step(pattern, position, groups)
        if item is None:
            continue
        quantifier = _QUANTIFIER.match(pattern, position)
        if quantifier is not None:
            position = quantifier.end()
            if pattern.startswith("+", position):
                return "possessive quantifiers need Python 3.11 in the image; use a plain one"
            objection = _repeat(item, *_limits(quantifier))
            if objection is not None:
                return objection
            position += pattern.startswith("?", position)
        groups[-1].take(item)
    return None


def _repeat(item: _Item, low: int, high: float) -> str | None:
    """Have the item repeated, `low` to `high` times; what speaks against it."""
    if item.ways and item.ways * high > _FEW:
        return (
            "a repetition of what varies in length, like (a+)+ or (a|b)*, can take for ever on a line that doesn't"
            " match; leave out what stands around the number, it is found anywhere in a line"
        )
    counted = 1 if math.isinf(high) else int(high)
    if item.times * counted > MAX_TIMES:
        return f"something is repeated more than {MAX_TIMES} times by its numbers; + and * repeat without one"
    item.take(_Item(max(item.ways * counted, int(low != high)), item.times * counted))
    return None


def _limits(quantifier: re.Match[str]) -> tuple[int, float]:
    sign = quantifier["sign"]
    if sign is not None:
        return int(sign == "+"), 1 if sign == "?" else math.inf
    low = int(quantifier["low"] or 0)
    if not quantifier["comma"]:
        return low, low
    return low, int(quantifier["high"]) if quantifier["high"] else math.inf


def _step(pattern: str, position: int, groups: list[_Item]) -> tuple[_Item | None, int]:
    """Pass one item; None for the first of the result when none was completed."""
    char = pattern[position]
    if char == "(":
        groups.append(_Item())
        # past the ? of (?: or (?P<name>, which is no quantifier
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
