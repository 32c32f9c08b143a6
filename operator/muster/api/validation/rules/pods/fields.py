"""Find what is wrong in a partial pod template: unknown fields, and values of the wrong type."""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from muster.api.document import JSON, Path
from muster.api.validation.rules.pods.schema import POD_SPEC, pod_schema

_LONGEST_NAME = 40
"""In characters: a longer name is not a misspelt field, and comparing long names takes time."""

_CLOSE = 0.6


@dataclass(frozen=True)
class WrongField:
    """`expected` is the expected type; None for an unknown field, whose allowed names are `allowed`."""

    path: Path
    value: JSON
    expected: str | None
    allowed: Sequence[str] = ()

    @property
    def nearest(self) -> str | None:
        """The field that the user probably meant."""
        name = str(self.path[-1])
        if len(name) > _LONGEST_NAME:
            return None
        folded = {field.lower(): field for field in self.allowed}
        close = difflib.get_close_matches(name.lower().replace("_", ""), folded, n=1, cutoff=_CLOSE)
        return folded[close[0]] if close else None


def wrong_fields(pod: Mapping[str, JSON], path: Path) -> Iterator[WrongField]:
    """Find everything wrong in the pod at `path`; null counts as absent."""
    return _of_type(POD_SPEC, dict(pod), path)


def _of_type(kind: str, value: JSON, path: Path) -> Iterator[WrongField]:
    if value is None:
        return
    is_scalar = _SCALARS.get(kind)
    if is_scalar is not None:
        if not is_scalar(value):
            yield WrongField(path, value, _WORDS[kind])
    elif kind[0] == "[":
        yield from _of_list(kind[1:-1], value, path)
    elif kind[0] == "{":
        yield from _of_map(kind[1:-1], value, path)
    else:
        yield from _of_fields(pod_schema().types[kind], value, path)


def _of_fields(types: Mapping[str, str], value: JSON, path: Path) -> Iterator[WrongField]:
    if not isinstance(value, dict):
        yield WrongField(path, value, "fields are")
        return
    for name, item in value.items():
        kind = types.get(name)
        if kind is None:
            yield WrongField((*path, name), item, None, tuple(types))
        else:
            yield from _of_type(kind, item, (*path, name))


def _of_list(kind: str, value: JSON, path: Path) -> Iterator[WrongField]:
    if not isinstance(value, list):
        yield WrongField(path, value, "a list is")
        return
    is_scalar = _SCALARS.get(kind)
    # check scalars here, without a call for each: a list may have a hundred thousand
    for index, item in enumerate(value):
        if is_scalar is None or not is_scalar(item):
            yield from _of_type(kind, item, (*path, index))


def _of_map(kind: str, value: JSON, path: Path) -> Iterator[WrongField]:
    if not isinstance(value, dict):
        yield WrongField(path, value, "fields are")
        return
    for name, item in value.items():
        yield from _of_type(kind, item, (*path, name))


def _is_integer(value: JSON) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number_or_text(value: JSON) -> bool:
    return isinstance(value, int | float | str) and not isinstance(value, bool)


_SCALARS: Mapping[str, Callable[[JSON], bool]] = MappingProxyType(
    {
        "text": lambda value: isinstance(value, str),
        "integer": _is_integer,
        "boolean": lambda value: isinstance(value, bool),
        "quantity": _is_number_or_text,
        "port": lambda value: isinstance(value, str) or _is_integer(value),
        "anything": lambda _: True,
    }
)

_WORDS = MappingProxyType(
    {
        "text": "text is",
        "integer": "a whole number is",
        "boolean": "true or false is",
        "quantity": "a quantity (2, 500m, 64Gi) is",
        "port": "a port's number or name is",
    }
)
