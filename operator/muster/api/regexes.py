"""Which regular expressions may read a metric: valid in every Python an image may bring, and not able to explode."""

import math
import re
import warnings

_QUANTIFIER = re.compile(r"(?P<sign>[*+?])|\{(?P<low>[0-9]*)(?P<comma>,?)(?P<high>[0-9]*)\}")
_COMMENT = re.compile(r"\(\?(#|[aiLmsu]*x)")
_FEW = 10
"""Repetitions that can't add up to much, whatever varies inside."""


def objection(pattern: str) -> str | None:
    """What speaks against a metric's regular expression; None when nothing does.

    A repetition of something that varies in length takes time exponential in a line's length when the line doesn't
    match, and would stop the agent. Repetitions side by side are at worst polynomial, and lines are bounded.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # what Python warns of today means something else in the image's tomorrow
            groups = re.compile(pattern).groups
    except (re.error, OverflowError, RecursionError, Warning) as error:
        return f"Python's re refuses it ({error})"
    if groups == 0:
        return 'it has no group; put the number in parentheses: "loss=([0-9.]+)"'
    return _shape_objection(pattern)


def _shape_objection(pattern: str) -> str | None:
    """Walk the pattern's groups and quantifiers; it is known to compile."""
    varies = [False]
    position = 0
    while position < len(pattern):
        if pattern.startswith("(?>", position):
            return "atomic groups need Python 3.11 in the image; use (?:...)"
        if _COMMENT.match(pattern, position):
            return "comments and verbose mode have no place in it"
        varied, position = _step(pattern, position, varies)
        quantifier = _QUANTIFIER.match(pattern, position) if varied is not None else None
        if quantifier is None:
            varies[-1] |= bool(varied)
            continue
        position = quantifier.end()
        if pattern.startswith("+", position):
            return "possessive quantifiers need Python 3.11 in the image; use a plain one"
        low, high = _limits(quantifier)
        if varied and high > _FEW:
            return (
                "a repetition of what varies in length, like (a+)+ or (a|b)*, can take for ever on a line that doesn't"
                " match; leave out what stands around the number, it is found anywhere in a line"
            )
        position += pattern.startswith("?", position)
        varies[-1] |= bool(varied) or low != high
    return None


def _limits(quantifier: re.Match[str]) -> tuple[int, float]:
    sign = quantifier["sign"]
    if sign is not None:
        return int(sign == "+"), 1 if sign == "?" else math.inf
    low = int(quantifier["low"] or 0)
    if not quantifier["comma"]:
        return low, low
    return low, int(quantifier["high"]) if quantifier["high"] else math.inf


def _step(pattern: str, position: int, varies: list[bool]) -> tuple[bool | None, int]:
    """Pass one item. First of the result: whether its length varies; None when no item was completed."""
    char = pattern[position]
    if char == "(":
        varies.append(False)
        # past the ? of (?: or (?P<name>, which is no quantifier
        return None, position + (2 if pattern.startswith("(?", position) else 1)
    if char == ")":
        return varies.pop(), position + 1
    if char == "|":
        varies[-1] = True
        return None, position + 1
    if char == "\\":
        return False, position + 2
    if char == "[":
        return False, _class_end(pattern, position)
    return False, position + 1


def _class_end(pattern: str, start: int) -> int:
    position = start + 1
    position += pattern.startswith("^", position)
    position += pattern.startswith("]", position)  # a ] at the beginning is a member
    while pattern[position] != "]":
        position += 2 if pattern[position] == "\\" else 1
    return position + 1
