"""Read the fields of a manifest one by one, and report each field that nothing has read, so that none is lost. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from muster.api.document import JSON, Document
from muster.api.validation.messages import describe_value
from muster.importers.kubernetes.report import Location, Report

Scalar = TypeVar("Scalar", bool, int, str)

_EXPECTED: Mapping[type, str] = {
    bool: "true or false is",
    int: "a whole number is",
    str: "text is",
    list: "a list is",
    dict: "fields are",
}

_MAX_COMPARED_CHARS = 60
"""Maximum length of a name for which muster suggests a field, because comparing long names takes time."""


class Reading:
    """The reading of one manifest: all of its `Fields`, and its report."""

    def __init__(self) -> None:
        self.report = Report()
        self._readers: list[Fields] = []

    def open(self, document: Document, path: tuple[str | int, ...] = (), value: JSON = None) -> Fields:
        """Return the fields at `path`, by default those of the whole document."""
        fields = document.value if value is None else value
        return self.read(Location(document, path), fields if isinstance(fields, dict) else {})

    def read(self, location: Location, value: Mapping[str, JSON]) -> Fields:
        """Return a reader of the fields."""
        reader = Fields(location, value, self)
        self._readers.append(reader)
        return reader

    def report_unread(self) -> None:
        """Report each field that nothing has read."""
        for reader in self._readers:
            reader.report_unread()


class Fields:
    """The fields at one location. A field that is null counts as missing. Wrong types are problems."""

    def __init__(
        self, location: Location, value: Mapping[str, JSON], reading: Reading, *, has_wrong_type: bool = False
    ) -> None:
        self.location = location
        self.has_wrong_type = has_wrong_type
        """Whether the value isn't fields, which the report says."""

        self._unread = dict(value)
        self._names = frozenset(name for name, item in value.items() if item is not None)
        self._asked: set[str] = set()
        self._reading = reading

    @property
    def report(self) -> Report:
        """The report of the manifest."""
        return self._reading.report

    @property
    def api_version(self) -> str:
        """The apiVersion of the document."""
        value = self.location.document.value
        return str(value.get("apiVersion")) if isinstance(value, dict) else ""

    @property
    def names(self) -> Collection[str]:
        """The names of the fields that are set, also of those that were read."""
        return self._names

    def locate(self, *keys: str | int) -> Location:
        """Return the location of a field."""
        return self.location.child(*keys)

    def has(self, name: str) -> bool:
        """Whether the field is set, without reading it."""
        return name in self._names

    def take(self, name: str) -> JSON:
        """Return the field's value of any type; None if it is missing."""
        self._asked.add(name)
        return self._unread.pop(name, None)

    def take_text(self, name: str) -> str | None:
        return self._take_scalar(name, str)

    def take_integer(self, name: str, minimum: int = 0) -> int | None:
        """Return a whole number, which must be at least `minimum`."""
        value = self._take_scalar(name, int)
        if value is not None and value < minimum:
            self.report.add(self.locate(name), f"found {value}; at least {minimum} is expected")
            return None
        return value

    def take_boolean(self, name: str) -> bool | None:
        return self._take_scalar(name, bool)

    def take_choice(self, name: str, choices: Sequence[str]) -> str | None:
        """Return one of `choices`."""
        value = self.take_text(name)
        if value is not None and value not in choices:
            self.report.add(self.locate(name), f"found {describe_value(value)}; allowed: {', '.join(choices)}")
            return None
        return value

    def take_fields(self, name: str) -> Fields:
        """Return a reader of the field's fields, which has none if the field is missing."""
        value = self.take(name)
        if value is not None and not isinstance(value, dict):
            self._report_type(self.locate(name), value, dict)
            return Fields(self.locate(name), {}, self._reading, has_wrong_type=True)
        return self._reading.read(self.locate(name), value if isinstance(value, dict) else {})

    def take_entries(self, name: str) -> list[Fields]:
        """Return readers of a list's entries."""
        entries = []
        for index, item in enumerate(self.take_list(name)):
            location = self.locate(name, index)
            if isinstance(item, dict):
                entries.append(self._reading.read(location, item))
            else:
                self._report_type(location, item, dict)
        return entries

    def take_list(self, name: str) -> list[JSON]:
        """Return a list; [] if the field is missing."""
        value = self.take(name)
        if value is not None and not isinstance(value, list):
            self._report_type(self.locate(name), value, list)
        return value if isinstance(value, list) else []

    def take_texts(self, name: str) -> list[str]:
        """Return a list of texts; [] if the field is missing."""
        texts = []
        for index, item in enumerate(self.take_list(name)):
            if isinstance(item, str):
                texts.append(item)
            else:
                self._report_type(self.locate(name, index), item, str)
        return texts

    def take_text_map(self, name: str) -> dict[str, JSON]:
        """Return a map of texts, such as labels; {} if the field is missing."""
        value = self.take(name)
        if value is not None and not isinstance(value, dict):
            self._report_type(self.locate(name), value, dict)
        texts: dict[str, JSON] = {}
        for key, item in (value if isinstance(value, dict) else {}).items():
            if isinstance(item, str):
                texts[key] = item
            else:
                self._report_type(self.locate(name, key), item, str)
        return texts

    def ignore(self, name: str, reason: str) -> None:
        """Read a field without effect in muster, and tell the user so."""
        if self.take(name) is not None:
            self.report.note(self.locate(name), reason)

    def refuse(self, name: str, remedy: str) -> None:
        """Read a field that a job can't have, and report it."""
        value = self.take(name)
        if value is not None:
            self.report.add(self.locate(name), f"found {describe_value(value)}; {remedy}")

    def report_unread(self) -> None:
        """Report each field that nothing has read."""
        for name in self._unread:
            matches = (
                difflib.get_close_matches(name, sorted(self._asked), n=1, cutoff=0.7)
                if len(name) <= _MAX_COMPARED_CHARS
                else []
            )
            hint = f"did you mean {matches[0]}?" if matches else "correct or remove it"
            self.report.add(self.locate(name), f"unknown field, which muster can't carry over; {hint}")
        self._unread = {}

    def _take_scalar(self, name: str, expected_type: type[Scalar]) -> Scalar | None:
        value = self.take(name)
        if value is None:
            return None
        if isinstance(value, expected_type) and not (expected_type is int and isinstance(value, bool)):
            return value
        self._report_type(self.locate(name), value, expected_type)
        return None

    def _report_type(self, location: Location, value: JSON, expected_type: type) -> None:
        self.report.add(location, f"found {describe_value(value)}; {_EXPECTED[expected_type]} expected")
