"""Encode the arguments of estimators and trainers as JSON for the parent process."""

from __future__ import annotations

import enum
import math

from .config_objects import ConfigObject
from .errors import UnsupportedOperation
from .unknown import UnknownValue, find_unknown_origin

OBJECT_KEY = "$shape"
"""The key that distinguishes an object of an SDK class from a dictionary of the script."""


def encode(value: object, location: str) -> object:
    """Encode the value at `location` as JSON. Raises `UnsupportedOperation` for a value that a file can't contain."""
    if isinstance(value, UnknownValue):
        raise _build_unknown_error(location, value.origin)
    if isinstance(value, enum.Enum):
        return encode(value.value, location)
    if isinstance(value, ConfigObject):
        fields = {name: encode(field, f"{location}.{name}") for name, field in value.get_arguments().items()}
        return {OBJECT_KEY: type(value).__name__, "fields": fields}
    if isinstance(value, dict):
        return {_check_key(key, location): encode(entry, f"{location}[{key!r}]") for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(entry, f"{location}[{index}]") for index, entry in enumerate(value)]
    return _encode_scalar(value, location)


def _encode_scalar(value: object, location: str) -> object:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise UnsupportedOperation(f"{location}: found {value}; a finite number is expected")
        return float(value)
    if isinstance(value, str):
        origin = find_unknown_origin(value)
        if origin is not None:
            raise _build_unknown_error(location, origin)
        return str(value)
    raise UnsupportedOperation(
        f"{location}: found a {type(value).__name__}; a file can contain only text, numbers, truth values, lists and "
        "dictionaries"
    )


def _check_key(key: object, location: str) -> str:
    if not isinstance(key, str) or key == OBJECT_KEY:
        raise UnsupportedOperation(f"{location}: found the key {key!r}; text is expected")
    return key


def _build_unknown_error(location: str, origin: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"{location}: the value comes from {origin}, which `muster import` can't call; write the value itself"
    )
