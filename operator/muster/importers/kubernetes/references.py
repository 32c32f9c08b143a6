"""References to variables, $(NAME), in commands and environments, as Kubernetes replaces them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from muster_worker.contract.rendezvous import is_rendezvous_variable

_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_.-][A-Za-z0-9_.-]*)\)")

_VARIABLE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?")


def expand(text: str, values: Mapping[str, str | None]) -> str:
    """Replace the references to known values, and $$ by $. Variables of the rendezvous remain."""

    def replace(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        value = None if is_rendezvous_variable(match[1]) else values.get(match[1])
        return match[0] if value is None else value

    return _REFERENCE.sub(replace, text)


def resolve_variable(text: str, values: Mapping[str, str | None]) -> str:
    """Return the value of a shell's $NAME or ${NAME} if it is known, else the text."""
    match = _VARIABLE.fullmatch(text)
    value = None if match is None else values.get(match[1])
    return text if value is None else value


def list_references(text: str) -> list[str]:
    """Return the names of the variables that the text refers to."""
    return [match[1] for match in _REFERENCE.finditer(text) if match[1]]
