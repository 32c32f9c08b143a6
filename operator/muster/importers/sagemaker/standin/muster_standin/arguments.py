"""Bind a call's arguments to their names, as the SDK's signatures would."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from .refused import Refused


def bound(owner: str, names: Sequence[str], values: Sequence[object], named: Mapping[str, object]) -> dict[str, object]:
    """The arguments by name; `names` are the parameters in order. Raises `Refused` for an unknown name."""
    if len(values) > len(names):
        raise Refused(f"{owner}(): found {len(values)} positional arguments; at most {len(names)} are allowed")
    arguments: dict[str, object] = dict(zip(names, values))
    for name, value in named.items():
        if name not in names:
            raise Refused(f"{owner}({name}=...): there is no such argument{_meant(name, names)}")
        if name in arguments:
            raise Refused(f"{owner}({name}=...): set twice")
        arguments[name] = value
    return arguments


def _meant(name: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {close[0]}?" if close else ""
