"""Find unknown fields and values of the wrong type in a partial pod template."""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from muster.api.document import JSON, FieldPath
from muster.api.validation.rules.pods.schema import POD_SPEC, load_pod_schema

_MAX_NAME_CHARS = 40
"""Maximum length of a name for which muster suggests a field, because comparing long names takes time."""

_SIMILARITY = 0.6


@dataclass(frozen=True)
class WrongField:
    """A wrong field. `expected` is the expected type, or None for an unknown field, with the names in `allowed`."""

    path: FieldPath
    value: JSON
    expected: str | None
    allowed: Sequence[str] = ()

    @property
    def nearest(self) -> str | None:
        """The name of the field that the user probably meant; None if no name is similar."""
        name = str(self.path[-1])
        if len(name) > _MAX_NAME_CHARS:
            return None
        field_by_lower_name = {field.lower(): field for field in self.allowed}
        close_matches = difflib.get_close_matches(
            name.lower().replace("_", ""), field_by_lower_name, n=1, cutoff=_SIMILARITY
        )
        return field_by_lower_name[close_matches[0]] if close_matches else None


def find_wrong_fields(pod: Mapping[str, JSON], path: FieldPath) -> Iterator[WrongField]:
    """Yield the wrong fields of the pod at `path`. A field that is null counts as missing."""
    return _check_type(POD_SPEC, dict(pod), path)


def _check_type(type_name: str, value: JSON, path: FieldPath) -> Iterator[WrongField]:
    if value is None:
        return
    is_scalar = _SCALARS.get(type_name)
    if is_scalar is not None:
        if not is_scalar(value):
            yield WrongField(path, value, _EXPECTED_TYPES[type_name])
    elif type_name[0] == "[":
        yield from _check_list(type_name[1:-1], value, path)
    elif type_name[0] == "{":
        yield from _check_map(type_name[1:-1], value, path)
    else:
        yield from _check_fields(load_pod_schema().types[type_name], value, path)


def _check_fields(types: Mapping[str, str], value: JSON, path: FieldPath) -> Iterator[WrongField]:
    if not isinstance(value, dict):
        yield WrongField(path, value, "fields are")
        return
    for name, item in value.items():
        type_name = types.get(name)
        if type_name is None:
            yield WrongField((*path, name), item, None, tuple(types))
        else:
            yield from _check_type(type_name, item, (*path, name))


def _check_list(type_name: str, value: JSON, path: FieldPath) -> Iterator[WrongField]:
    if not isinstance(value, list):
        yield WrongField(path, value, "a list is")
        return
    is_scalar = _SCALARS.get(type_name)
    # Check scalars without a function call for each, because a list may have 100,000 of them.
    for index, item in enumerate(value):
        if is_scalar is None or not is_scalar(item):
            yield from _check_type(type_name, item, (*path, index))


def _check_map(type_name: str, value: JSON, path: FieldPath) -> Iterator[WrongField]:
    if not isinstance(value, dict):
        yield WrongField(path, value, "fields are")
        return
    for name, item in value.items():
        yield from _check_type(type_name, item, (*path, name))


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

_EXPECTED_TYPES = MappingProxyType(
    {
        "text": "text is",
        "integer": "a whole number is",
        "boolean": "true or false is",
        "quantity": "a quantity (2, 500m, 64Gi) is",
        "port": "a port's number or name is",
    }
)
