"""The arguments of one call, taken one by one: one that is left over or of a wrong type is a problem. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from muster.api.document import JSON, quoted
from muster.importers.sagemaker.translate.recording import Built, Value

Kind = TypeVar("Kind", bool, int, float, str)

_WORDS: Mapping[type, str] = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a dictionary",
}


class Problems:
    """What is wrong with a run, and what to tell besides, in the order in which it was found."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.warnings: list[str] = []

    def add(self, where: str, message: str) -> None:
        """Something that keeps the run from being imported."""
        self.found.append(f"{where}: {message}")

    def warn(self, where: str, message: str) -> None:
        """Something that the user has to know."""
        self.warnings.append(f"{where}: {message}")


class Arguments:
    """The arguments of one call. `where` is how messages call them, with {} in the place of a name."""

    def __init__(self, where: str, values: Mapping[str, Value], problems: Problems) -> None:
        self._where = where
        self._left = {name: value for name, value in values.items() if value is not None}
        self.problems = problems

    def where(self, name: str) -> str:
        """How messages call the argument: `PyTorch(role=...)`."""
        return self._where.format(name)

    def value(self, name: str) -> Value:
        """The argument as it is; None when it wasn't given."""
        return self._left.pop(name, None)

    def text(self, name: str) -> str | None:
        return self._of(name, str)

    def whole(self, name: str) -> int | None:
        return self._of(name, int)

    def truth(self, name: str) -> bool | None:
        return self._of(name, bool)

    def texts(self, name: str) -> list[JSON]:
        """A list of texts; empty when it wasn't given."""
        return [item for item in self.listed(name) if self._is(name, item, str) and isinstance(item, str)]

    def listed(self, name: str) -> list[Value]:
        """A list; empty when it wasn't given."""
        value = self.value(name)
        return value if value is not None and self._is(name, value, list) and isinstance(value, list) else []

    def dictionary(self, name: str) -> dict[str, Value]:
        """A dictionary; empty when it wasn't given."""
        value = self.value(name)
        return value if value is not None and self._is(name, value, dict) and isinstance(value, dict) else {}

    def text_map(self, name: str) -> dict[str, JSON]:
        """A dictionary of texts; empty when it wasn't given."""
        result = self.dictionary(name)
        for key, item in result.items():
            if not isinstance(item, str):
                self.problems.add(self.where(name), f"found {shown(item)} under {quoted(key)}; text is expected")
        return {key: item for key, item in result.items() if isinstance(item, str)}

    def built(self, name: str, *kinds: str) -> Arguments | None:
        """The arguments of a value that was built by one of the classes `kinds`."""
        value = self.value(name)
        return None if value is None else inside(self, name, value, *kinds)

    def nothing_left(self, why: str) -> None:
        """Say of each argument that is left over that there is no field for it. `why` says more, or is empty."""
        for name in sorted(self._left):
            self.problems.add(self.where(name), f"muster's jobs have no field for this{why}")
        self._left = {}

    def _of(self, name: str, kind: type[Kind]) -> Kind | None:
        value = self.value(name)
        return value if value is not None and self._is(name, value, kind) and isinstance(value, kind) else None

    def _is(self, name: str, value: Value, kind: type) -> bool:
        right = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
        if not right:
            self.problems.add(self.where(name), f"found {shown(value)}; {_WORDS[kind]} is expected")
        return right


def inside(outer: Arguments, name: str, value: Value, *kinds: str) -> Arguments | None:
    """The arguments of a value under the argument `name`, which is to be built by one of the classes `kinds`."""
    if isinstance(value, Built) and value.kind in kinds:
        return Arguments(f"{value.kind}({{}}=...)", value.fields, outer.problems)
    outer.problems.add(outer.where(name), f"found {shown(value)}; {' or '.join(kinds)} is expected")
    return None


def shown(value: Value) -> str:
    """A value as a message calls it."""
    if isinstance(value, Built):
        return f"{value.kind}(...)"
    if isinstance(value, str):
        return f"the text {quoted(value)}"
    if isinstance(value, (list, dict)):
        return f"a {_WORDS[type(value)].removeprefix('a ')}"
    return repr(value)


def set_field(fields: dict[str, JSON], name: str, value: JSON) -> None:
    """Set a field unless there is nothing to say."""
    if value not in (None, "", [], {}):
        fields[name] = value
