"""Bind the arguments of a call to the names of the SDK's parameters."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from .errors import Unsupported


def bind_arguments(
    owner: str, names: Sequence[str], values: Sequence[object], named: Mapping[str, object]
) -> dict[str, object]:
    """Return the arguments by name; `names` are the parameters in order. Raises `Unsupported` for an unknown name."""
    if len(values) > len(names):
        raise Unsupported(f"{owner}(): found {len(values)} positional arguments; at most {len(names)} are allowed")
    arguments: dict[str, object] = dict(zip(names, values))
    for name, value in named.items():
        if name not in names:
            raise Unsupported(f"{owner}({name}=...): there is no such argument{_suggest_name(name, names)}")
        if name in arguments:
            raise Unsupported(f"{owner}({name}=...): set twice")
        arguments[name] = value
    return arguments


def _suggest_name(name: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {close[0]}?" if close else ""
