"""Read the arguments of one call one by one: a leftover or one of a wrong type is a problem. Pure."""

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
    """Problems and warnings of a run, in the order in which they were found."""

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
    """The arguments of one call. `where` is their description in messages, with {} in place of a name."""

    def __init__(self, where: str, values: Mapping[str, Value], problems: Problems) -> None:
        self._where = where
        self._left = {name: value for name, value in values.items() if value is not None}
        self.problems = problems

    def where(self, name: str) -> str:
        """How messages name the argument: `PyTorch(role=...)`."""
        return self._where.format(name)

    def value(self, name: str) -> Value:
        """The argument's value; None if the call lacks it."""
        return self._left.pop(name, None)

    def text(self, name: str) -> str | None:
        return self._of(name, str)

    def whole(self, name: str) -> int | None:
        return self._of(name, int)

    def truth(self, name: str) -> bool | None:
        return self._of(name, bool)

    def texts(self, name: str) -> list[JSON]:
        """A list of texts; empty if the call lacks it."""
        return [item for item in self.listed(name) if self._is(name, item, str) and isinstance(item, str)]

    def listed(self, name: str) -> list[Value]:
        """A list; empty if the call lacks it."""
        value = self.value(name)
        return value if value is not None and self._is(name, value, list) and isinstance(value, list) else []

    def dictionary(self, name: str) -> dict[str, Value]:
        """A dictionary; empty if the call lacks it."""
        value = self.value(name)
        return value if value is not None and self._is(name, value, dict) and isinstance(value, dict) else {}

    def text_map(self, name: str) -> dict[str, JSON]:
        """A dictionary of texts; empty if the call lacks it."""
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
        """Report each leftover argument: a job has no field for it. `why` adds a reason, or is empty."""
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
    """The arguments of the value of argument `name`, which one of the classes `kinds` must have built."""
    if isinstance(value, Built) and value.kind in kinds:
        return Arguments(f"{value.kind}({{}}=...)", value.fields, outer.problems)
    outer.problems.add(outer.where(name), f"found {shown(value)}; {' or '.join(kinds)} is expected")
    return None


def shown(value: Value) -> str:
    """Describe a value for a message."""
    if isinstance(value, Built):
        return f"{value.kind}(...)"
    if isinstance(value, str):
        return f"the text {quoted(value)}"
    if isinstance(value, (list, dict)):
        return f"a {_WORDS[type(value)].removeprefix('a ')}"
    return repr(value)


def set_field(fields: dict[str, JSON], name: str, value: JSON) -> None:
    """Set a field unless its value is empty."""
    if value not in (None, "", [], {}):
        fields[name] = value
