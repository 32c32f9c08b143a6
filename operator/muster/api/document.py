"""A document from a file: its value as JSON, and the line of each of its fields."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"
"""A JSON value. Integers fit into 64 bits; floats are finite, and no float is a whole number of that range."""

Path: TypeAlias = tuple[str | int, ...]
"""The path from the document's root to a value: keys and list positions."""

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_/-]{1,64}")
_MAX_KEY_CHARS = 64


@dataclass(frozen=True)
class Document:
    """A document and its source. `lines` holds the line (from 1) of every field; it is empty for JSON text."""

    value: JSON
    source: str = "resource"
    lines: Mapping[Path, int] = field(default_factory=dict)

    def line(self, path: Path) -> int | None:
        """The line of `path`, or of its nearest parent that has a line."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return None


def shown(path: Path) -> str:
    """Return a path as people read it: `spec.inputs[1].name`; a key that isn't a plain word is quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{quoted(part)}]"
    return text


def quoted(text: str) -> str:
    """Quote a user's text for a message: on one line, of bounded length."""
    cut = text if len(text) <= _MAX_KEY_CHARS else text[: _MAX_KEY_CHARS - 1] + "…"
    escaped = cut.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in escaped) + '"'
