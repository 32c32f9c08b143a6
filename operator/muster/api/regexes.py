"""Which regular expressions may read a metric: valid in every Python an image may bring, and not able to explode."""

import re
import warnings

_UNBOUNDED = re.compile(r"[*+]|\{[0-9]*,\}")
_QUANTIFIER = re.compile(r"[*+?]|\{[0-9]*,[0-9]*\}|\{[0-9]+\}")


def objection(pattern: str) -> str | None:
    """What speaks against a metric's regular expression; None when nothing does.

    A repetition without an upper limit inside another one takes time exponential in a line's length when the line
    doesn't match, and would stop the agent. Repetitions side by side are at worst polynomial, and lines are bounded.
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
    unbounded_inside = [False]
    position = 0
    while position < len(pattern):
        if pattern.startswith("(?>", position):
            return "atomic groups need Python 3.11 in the image; use (?:...)"
        closed, position = _step(pattern, position, unbounded_inside)
        quantifier = _QUANTIFIER.match(pattern, position) if closed is not None else None
        if quantifier is None:
            unbounded_inside[-1] |= bool(closed)
            continue
        position = quantifier.end()
        unbounded = _UNBOUNDED.fullmatch(quantifier[0]) is not None
        if unbounded and closed:
            return "a repetition inside a repetition, like (a+)+, can take for ever on a line that doesn't match"
        if pattern.startswith("+", position):
            return "possessive quantifiers need Python 3.11 in the image; use a plain one"
        position += pattern.startswith("?", position)
        unbounded_inside[-1] |= unbounded or bool(closed)
    return None


def _step(pattern: str, position: int, unbounded_inside: list[bool]) -> tuple[bool | None, int]:
    """Pass one item. First of the result: whether it held an unbounded repetition; None when nothing was completed."""
    char = pattern[position]
    if char == "(":
        unbounded_inside.append(False)
        # past the ? of (?: or (?P<name>, which is no quantifier
        return None, position + (2 if pattern.startswith("(?", position) else 1)
    if char == ")":
        return unbounded_inside.pop(), position + 1
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
