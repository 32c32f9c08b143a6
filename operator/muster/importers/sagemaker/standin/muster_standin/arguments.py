"""A call's arguments by their names, as the SDK's own signatures would take them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from .refused import Refused


def bound(owner: str, names: Sequence[str], values: Sequence[object], named: Mapping[str, object]) -> dict[str, object]:
    """What was given, by name; `names` are the known ones in their order. Raises `Refused`, which names the unknown."""
    if len(values) > len(names):
        raise Refused(f"{owner}(): found {len(values)} arguments without a name; there are {len(names)}")
    arguments: dict[str, object] = dict(zip(names, values))
    for name, value in named.items():
        if name not in names:
            raise Refused(f"{owner}({name}=...): there is no such argument{_meant(name, names)}")
        if name in arguments:
            raise Refused(f"{owner}({name}=...): given twice")
        arguments[name] = value
    return arguments


def _meant(name: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {close[0]}?" if close else ""
