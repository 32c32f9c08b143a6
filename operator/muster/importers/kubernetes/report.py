"""Problems and notices about the fields of manifests, with their files and lines. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from muster.api.document import Document, FieldPath, escape_unprintable, format_path
from muster.api.field_problems import FieldProblem

MAX_MESSAGE_CHARS = 1_000
"""The rest of a longer message is dropped: it may quote a text of a manifest."""


@dataclass(frozen=True)
class Location:
    """A field of a document."""

    document: Document
    path: FieldPath

    def child(self, *keys: str | int) -> Location:
        """Return the location of a field below this one."""
        return Location(self.document, (*self.path, *keys))

    def describe(self, message: str, suffix: str = "") -> str:
        """Return `file:line: path: message`. `suffix` is the formatted rest of the path."""
        text = format_path(self.path) + suffix
        problem = FieldProblem(_make_printable(text), _make_printable(message), self.document.find_line(self.path))
        return problem.format_with_source(self.document.source)


class Report:
    """The problems and the notices of one manifest. With a problem, muster prints no job."""

    def __init__(self) -> None:
        self._problems: list[tuple[Location, str]] = []
        self._notices: list[tuple[Location, str]] = []

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems in the file's order."""
        return _sort(self._problems)

    @property
    def notices(self) -> tuple[str, ...]:
        """The notices in the file's order."""
        return _sort(self._notices)

    def add(self, location: Location, message: str, suffix: str = "") -> None:
        """Add a problem."""
        self._problems.append((location, location.describe(message, suffix)))

    def note(self, location: Location, message: str) -> None:
        """Add a notice about a field that has no effect in muster, or another one."""
        self._notices.append((location, location.describe(message)))


def _make_printable(text: str) -> str:
    """Escape what controls a terminal: an administrator may list the manifests of tenants."""
    shortened = text if len(text) <= MAX_MESSAGE_CHARS else text[: MAX_MESSAGE_CHARS - 1] + "…"
    return escape_unprintable(shortened)


def _sort(entries: list[tuple[Location, str]]) -> tuple[str, ...]:
    sorted_entries = sorted(entries, key=lambda entry: entry[0].document.find_line(entry[0].path) or 0)
    return tuple(dict.fromkeys(text for _, text in sorted_entries))
