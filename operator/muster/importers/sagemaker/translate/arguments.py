"""Read the arguments of a call; unread arguments and wrong types are problems. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from muster.api.document import JSON, quote
from muster.importers.sagemaker.translate.recording import SdkObject, Value

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
    """Problems and warnings of a run, in order."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.warnings: list[str] = []

    def add(self, where: str, message: str) -> None:
        """Add a problem that prevents the import of the run."""
        self.found.append(f"{where}: {message}")

    def warn(self, where: str, message: str) -> None:
        """Add a warning for the user."""
        self.warnings.append(f"{where}: {message}")


class Arguments:
    """The arguments of one call. `where` describes an argument in messages, with {} in place of its name."""

    def __init__(self, where: str, values: Mapping[str, Value], problems: Problems) -> None:
        self._where = where
        self._left = {name: value for name, value in values.items() if value is not None}
        self.problems = problems

    def where(self, name: str) -> str:
        """Describe the argument for messages: `PyTorch(role=...)`."""
        return self._where.format(name)

    def value(self, name: str) -> Value:
        """Return the argument's value; None if the call lacks it."""
        return self._left.pop(name, None)

    def text(self, name: str) -> str | None:
        return self._typed_value(name, str)

    def integer(self, name: str) -> int | None:
        return self._typed_value(name, int)

    def boolean(self, name: str) -> bool | None:
        return self._typed_value(name, bool)

    def text_list(self, name: str) -> list[JSON]:
        """Return a list of texts; empty if the call lacks it."""
        return [item for item in self.value_list(name) if self._check_type(name, item, str) and isinstance(item, str)]

    def value_list(self, name: str) -> list[Value]:
        """Return a list; empty if the call lacks it."""
        value = self.value(name)
        return value if value is not None and self._check_type(name, value, list) and isinstance(value, list) else []

    def dictionary(self, name: str) -> dict[str, Value]:
        """Return a dictionary; empty if the call lacks it."""
        value = self.value(name)
        return value if value is not None and self._check_type(name, value, dict) and isinstance(value, dict) else {}

    def text_map(self, name: str) -> dict[str, JSON]:
        """Return a dictionary of texts; empty if the call lacks it."""
        result = self.dictionary(name)
        for key, item in result.items():
            if not isinstance(item, str):
                self.problems.add(
                    self.where(name), f"found {describe_value(item)} under {quote(key)}; text is expected"
                )
        return {key: item for key, item in result.items() if isinstance(item, str)}

    def sdk_object(self, name: str, *kinds: str) -> Arguments | None:
        """Return the arguments of an object of one of the SDK's classes `kinds`."""
        value = self.value(name)
        return None if value is None else nested_arguments(self, name, value, *kinds)

    def report_leftovers(self, why: str) -> None:
        """Report each unread argument as a problem: a job has no field for it. `why` adds a reason."""
        for name in sorted(self._left):
            self.problems.add(self.where(name), f"muster's jobs have no field for this{why}")
        self._left = {}

    def _typed_value(self, name: str, kind: type[Kind]) -> Kind | None:
        value = self.value(name)
        return value if value is not None and self._check_type(name, value, kind) and isinstance(value, kind) else None

    def _check_type(self, name: str, value: Value, kind: type) -> bool:
        is_of_kind = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
        if not is_of_kind:
            self.problems.add(self.where(name), f"found {describe_value(value)}; {_WORDS[kind]} is expected")
        return is_of_kind


def nested_arguments(outer: Arguments, name: str, value: Value, *kinds: str) -> Arguments | None:
    """Return the arguments of `value`, which must be an object of one of the SDK's classes `kinds`."""
    if isinstance(value, SdkObject) and value.kind in kinds:
        return Arguments(f"{value.kind}({{}}=...)", value.fields, outer.problems)
    outer.problems.add(outer.where(name), f"found {describe_value(value)}; {' or '.join(kinds)} is expected")
    return None


def describe_value(value: Value) -> str:
    """Describe a value for a message."""
    if isinstance(value, SdkObject):
        return f"{value.kind}(...)"
    if isinstance(value, str):
        return f"the text {quote(value)}"
    if isinstance(value, (list, dict)):
        return f"a {_WORDS[type(value)].removeprefix('a ')}"
    return repr(value)


def set_field(fields: dict[str, JSON], name: str, value: JSON) -> None:
    """Set a field unless its value is empty."""
    if value not in (None, "", [], {}):
        fields[name] = value
