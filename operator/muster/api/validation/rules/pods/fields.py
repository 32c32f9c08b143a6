"""Find unknown fields and values of the wrong type in a partial pod template."""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from muster.api.document import JSON, FieldPath
from muster.api.validation.rules.pods.schema import POD_SPEC, pod_schema

_LONGEST_NAME = 40
"""Maximum length of a misspelt field, in characters: comparing longer names takes time."""

_SIMILARITY = 0.6


@dataclass(frozen=True)
class WrongField:
    """`expected` is the expected type; None for an unknown field, whose allowed names are `allowed`."""

    path: FieldPath
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
        close = difflib.get_close_matches(name.lower().replace("_", ""), folded, n=1, cutoff=_SIMILARITY)
        return folded[close[0]] if close else None


def find_wrong_fields(pod: Mapping[str, JSON], path: FieldPath) -> Iterator[WrongField]:
    """Yield the wrong fields of the pod at `path`; null counts as missing."""
    return _check_type(POD_SPEC, dict(pod), path)


def _check_type(kind: str, value: JSON, path: FieldPath) -> Iterator[WrongField]:
    if value is None:
        return
    is_scalar = _SCALARS.get(kind)
    if is_scalar is not None:
        if not is_scalar(value):
            yield WrongField(path, value, _EXPECTATIONS[kind])
    elif kind[0] == "[":
        yield from _check_list(kind[1:-1], value, path)
    elif kind[0] == "{":
        yield from _check_map(kind[1:-1], value, path)
    else:
        yield from _check_fields(pod_schema().types[kind], value, path)


def _check_fields(types: Mapping[str, str], value: JSON, path: FieldPath) -> Iterator[WrongField]:
    if not isinstance(value, dict):
        yield WrongField(path, value, "fields are")
        return
    for name, item in value.items():
        kind = types.get(name)
        if kind is None:
            yield WrongField((*path, name), item, None, tuple(types))
        else:
            yield from _check_type(kind, item, (*path, name))


def _check_list(kind: str, value: JSON, path: FieldPath) -> Iterator[WrongField]:
    if not isinstance(value, list):
        yield WrongField(path, value, "a list is")
        return
    is_scalar = _SCALARS.get(kind)
    # check scalars without a function call for each: a list may have a hundred thousand
    for index, item in enumerate(value):
        if is_scalar is None or not is_scalar(item):
            yield from _check_type(kind, item, (*path, index))


def _check_map(kind: str, value: JSON, path: FieldPath) -> Iterator[WrongField]:
    if not isinstance(value, dict):
        yield WrongField(path, value, "fields are")
        return
    for name, item in value.items():
        yield from _check_type(kind, item, (*path, name))


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

_EXPECTATIONS = MappingProxyType(
    {
        "text": "text is",
        "integer": "a whole number is",
        "boolean": "true or false is",
        "quantity": "a quantity (2, 500m, 64Gi) is",
        "port": "a port's number or name is",
    }
)
