"""Limit the size of a metric's regular expression before Python compiles it, in one pass over its text.

The time for compiling depends more on the content than on the length. Under (?i), Python visits each character of a
range in a class, up to 65,536 of them. It parses nested groups recursively.
"""

import re
from dataclasses import dataclass

MAX_DEPTH = 16
"""Maximum depth of nested groups. About a hundred can overflow the compiler's stack."""

MAX_RANGES = 24
"""Maximum number of ranges in all classes; [0-9a-zA-Z] has three. Each range takes 20 µs under (?i)."""

MAX_WIDE_CLASSES = 4
"""Maximum number of classes with a non-ASCII character. For each, Python builds a map of 65,536 entries."""

_ASCII_CHARACTERS = 128
_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}]*\}|[0-7]{1,3}|.)", re.DOTALL)
_COMMENT = re.compile(r"\(\?(?:#|[aiLmsu-]*x)")


@dataclass
class _Size:
    depth: int = 0
    ranges: int = 0
    wide_classes: int = 0


def find_size_problem(pattern: str) -> str | None:
    """Return why the expression is too large to compile, or None. The expression may be invalid."""
    size, position = _Size(), 0
    while position < len(pattern):
        # This function can't parse comments, so it rejects them.
        if _COMMENT.match(pattern, position):
            return "comments and verbose mode are not allowed"
        char = pattern[position]
        if char == "[":
            position, problem = _read_class(pattern, position, size)
            if problem is not None:
                return problem
            continue
        size.depth += {"(": 1, ")": -1}.get(char, 0)
        if size.depth > MAX_DEPTH:
            return (
                f"its groups are nested more than {MAX_DEPTH} deep; remove parts of the expression that do not match "
                "the number"
            )
        position += 2 if char == "\\" else 1
    return None


def _read_class(pattern: str, start: int, size: _Size) -> tuple[int, str | None]:
    """Return the position after the class that begins at `start`, and a problem with the class or None."""
    position = start + 1
    position += pattern.startswith("^", position)
    first_member, is_wide, ranges = position, False, 0
    while position < len(pattern) and (pattern[position] != "]" or position == first_member):
        position, member_is_wide = _read_class_member(pattern, position)
        is_wide |= member_is_wide
        if pattern.startswith("-", position) and not pattern.startswith("-]", position):
            position, member_is_wide = _read_class_member(pattern, position + 1)
            is_wide |= member_is_wide
            ranges += 1
    if is_wide and ranges:
        return position, "a class with a range contains a non-ASCII character; write the class without it"
    size.ranges += ranges
    size.wide_classes += is_wide
    if size.ranges > MAX_RANGES:
        return position, f"its classes have more than {MAX_RANGES} ranges; \\d, \\w and \\S replace most of them"
    if size.wide_classes > MAX_WIDE_CLASSES:
        return (
            position,
            f"more than {MAX_WIDE_CLASSES} classes contain a non-ASCII character; use fewer",
        )
    return position + 1, None


def _read_class_member(pattern: str, position: int) -> tuple[int, bool]:
    """Return the position after one member of a class, and whether it is a non-ASCII character."""
    escape = _ESCAPE.match(pattern, position)
    if escape is None:
        return position + 1, ord(pattern[position : position + 1] or " ") >= _ASCII_CHARACTERS
    letter, digits = escape.group()[1], escape.group()[2:]
    if letter == "N":
        return escape.end(), True
    if letter in "01234567":
        return escape.end(), int(escape.group()[1:], 8) >= _ASCII_CHARACTERS
    if letter in "xuU" and digits:
        return escape.end(), int(digits, 16) >= _ASCII_CHARACTERS
    return escape.end(), ord(letter) >= _ASCII_CHARACTERS
