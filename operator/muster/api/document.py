"""A parsed document: its JSON value, and the line of each field."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"
"""A JSON value. Integers fit into 64 bits. Floats are finite, and whole numbers within 64 bits are never floats."""

FieldPath: TypeAlias = tuple[str | int, ...]
"""The path from the document's root to a value: keys and list positions."""

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_/-]{1,64}")
_MAX_QUOTED_CHARS = 64


@dataclass(frozen=True)
class Document:
    """A document and its source. `lines` has the line number (from 1) of every field; it is empty for JSON text."""

    value: JSON
    source: str = "resource"
    lines: Mapping[FieldPath, int] = field(default_factory=dict)

    def find_line(self, path: FieldPath) -> int | None:
        """Return the line of `path`, or of its nearest parent that has a line; None if there is no such parent."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return None


def format_path(path: FieldPath) -> str:
    """Format a path for messages: `spec.inputs[1].name`. Quote keys that are long or have special characters."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        elif _PLAIN_KEY.fullmatch(key):
            text += f".{key}" if text else key
        else:
            text += f"[{quote(key)}]"
    return text


def quote(text: str) -> str:
    """Quote a user's text for a message: escape line ends, and truncate long text."""
    shortened_text = text if len(text) <= _MAX_QUOTED_CHARS else text[: _MAX_QUOTED_CHARS - 1] + "…"
    escaped = shortened_text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escape_unprintable(escaped) + '"'


def escape_unprintable(text: str) -> str:
    """Escape line ends, and other characters that control a terminal."""
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)
