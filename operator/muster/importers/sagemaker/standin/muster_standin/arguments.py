"""Bind the arguments of a call to the names of the SDK's parameters."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from .errors import UnsupportedOperation


def bind_arguments(
    callable_name: str, names: Sequence[str], positional: Sequence[object], keywords: Mapping[str, object]
) -> dict[str, object]:
    """Return the arguments by name. Raises `UnsupportedOperation` for unknown names.

    `callable_name` is the name of the called function or class, for messages. `names` are its parameters in order.
    """
    if len(positional) > len(names):
        raise UnsupportedOperation(
            f"{callable_name}(): found {len(positional)} positional arguments; at most {len(names)} are allowed"
        )
    arguments: dict[str, object] = dict(zip(names, positional))
    for name, value in keywords.items():
        if name not in names:
            raise UnsupportedOperation(
                f"{callable_name}({name}=...): there is no such argument{_suggest_name(name, names)}"
            )
        if name in arguments:
            raise UnsupportedOperation(f"{callable_name}({name}=...): set twice")
        arguments[name] = value
    return arguments


def _suggest_name(name: str, names: Sequence[str]) -> str:
    close_matches = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {close_matches[0]}?" if close_matches else ""
