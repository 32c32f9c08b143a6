"""Read the arguments of a call, and report unread arguments and wrong types as problems. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from muster.api.document import JSON, quote
from muster.importers.sagemaker.translate.recording import SdkObject, Value

ScalarType = TypeVar("ScalarType", bool, int, float, str)

_TYPE_NAMES: Mapping[type, str] = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a dictionary",
}


class Problems:
    """The problems and warnings of a run, in order."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.warnings: list[str] = []

    def add(self, location: str, message: str) -> None:
        """Add a problem that prevents the import of the run."""
        self.messages.append(f"{location}: {message}")

    def warn(self, location: str, message: str) -> None:
        """Add a warning for the user."""
        self.warnings.append(f"{location}: {message}")


class Arguments:
    """The arguments of one call. `template` describes an argument in messages, with {} instead of its name."""

    def __init__(self, template: str, values: Mapping[str, Value], problems: Problems) -> None:
        self._template = template
        self._unread_arguments = {name: value for name, value in values.items() if value is not None}
        self.problems = problems

    def describe_argument(self, name: str) -> str:
        """Describe the argument for messages: `PyTorch(role=...)`."""
        return self._template.format(name)

    def take_value(self, name: str) -> Value:
        """Return the argument's value; None if the call lacks the argument."""
        return self._unread_arguments.pop(name, None)

    def take_text(self, name: str) -> str | None:
        return self._take_typed_value(name, str)

    def take_integer(self, name: str) -> int | None:
        return self._take_typed_value(name, int)

    def take_boolean(self, name: str) -> bool | None:
        return self._take_typed_value(name, bool)

    def take_text_list(self, name: str) -> list[JSON]:
        """Return a list of texts; [] if the call lacks the argument."""
        return [item for item in self.take_list(name) if self._check_type(name, item, str) and isinstance(item, str)]

    def take_list(self, name: str) -> list[Value]:
        """Return a list; [] if the call lacks the argument."""
        value = self.take_value(name)
        return value if value is not None and self._check_type(name, value, list) and isinstance(value, list) else []

    def take_dictionary(self, name: str) -> dict[str, Value]:
        """Return a dictionary; {} if the call lacks the argument."""
        value = self.take_value(name)
        return value if value is not None and self._check_type(name, value, dict) and isinstance(value, dict) else {}

    def take_text_map(self, name: str) -> dict[str, JSON]:
        """Return a dictionary of texts; {} if the call lacks the argument."""
        result = self.take_dictionary(name)
        for key, item in result.items():
            if not isinstance(item, str):
                self.problems.add(
                    self.describe_argument(name), f"found {describe_value(item)} under {quote(key)}; text is expected"
                )
        return {key: item for key, item in result.items() if isinstance(item, str)}

    def take_object(self, name: str, *class_names: str) -> Arguments | None:
        """Return the arguments of an object of one of the SDK's classes `class_names`; None if it is not one."""
        value = self.take_value(name)
        return None if value is None else read_object(self, name, value, *class_names)

    def report_unread(self) -> None:
        """Report each unread argument as a problem, because a job has no field for it."""
        for name in sorted(self._unread_arguments):
            self.problems.add(self.describe_argument(name), "a job has no field for this argument")
        self._unread_arguments = {}

    def _take_typed_value(self, name: str, expected_type: type[ScalarType]) -> ScalarType | None:
        value = self.take_value(name)
        return (
            value
            if value is not None and self._check_type(name, value, expected_type) and isinstance(value, expected_type)
            else None
        )

    def _check_type(self, name: str, value: Value, expected_type: type) -> bool:
        is_expected_type = isinstance(value, expected_type) and not (expected_type is int and isinstance(value, bool))
        if not is_expected_type:
            self.problems.add(
                self.describe_argument(name), f"found {describe_value(value)}; {_TYPE_NAMES[expected_type]} is expected"
            )
        return is_expected_type


def read_object(parent: Arguments, name: str, value: Value, *class_names: str) -> Arguments | None:
    """Return the arguments of `value`, which must be an object of one of the SDK's classes `class_names`."""
    if isinstance(value, SdkObject) and value.class_name in class_names:
        return Arguments(f"{value.class_name}({{}}=...)", value.fields, parent.problems)
    parent.problems.add(
        parent.describe_argument(name), f"found {describe_value(value)}; {' or '.join(class_names)} is expected"
    )
    return None


def describe_value(value: Value) -> str:
    """Describe a value for a message."""
    if isinstance(value, SdkObject):
        return f"{value.class_name}(...)"
    if isinstance(value, str):
        return f"the text {quote(value)}"
    if isinstance(value, (list, dict)):
        return f"a {_TYPE_NAMES[type(value)].removeprefix('a ')}"
    return repr(value)


def set_field(fields: dict[str, JSON], name: str, value: JSON) -> None:
    """Set a field unless its value is empty."""
    if value not in (None, "", [], {}):
        fields[name] = value
