"""Encode the arguments of estimators and trainers as JSON for the parent process."""

from __future__ import annotations

import enum
import math

from .config_objects import ConfigObject
from .errors import Unsupported
from .unknown import Unknown, unknown_origin

OBJECT_KEY = "$shape"
"""The key that marks an object of an SDK class, in contrast to a dictionary of the script."""


def encode(value: object, where: str) -> object:
    """Encode the value as JSON. Raises `Unsupported` with `where` for a value that a file can't contain."""
    if isinstance(value, Unknown):
        raise _unknown_value(where, value.origin)
    if isinstance(value, enum.Enum):
        return encode(value.value, where)
    if isinstance(value, ConfigObject):
        fields = {name: encode(field, f"{where}.{name}") for name, field in value.given().items()}
        return {OBJECT_KEY: type(value).__name__, "fields": fields}
    if isinstance(value, dict):
        return {_check_key(key, where): encode(entry, f"{where}[{key!r}]") for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(entry, f"{where}[{index}]") for index, entry in enumerate(value)]
    return _encode_scalar(value, where)


def _encode_scalar(value: object, where: str) -> object:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Unsupported(f"{where}: found {value}; a finite number is expected")
        return float(value)
    if isinstance(value, str):
        origin = unknown_origin(value)
        if origin is not None:
            raise _unknown_value(where, origin)
        return str(value)
    raise Unsupported(
        f"{where}: found a {type(value).__name__}; text, numbers, truth values, lists and dictionaries of them "
        "can be written into a file"
    )


def _check_key(key: object, where: str) -> str:
    if not isinstance(key, str) or key == OBJECT_KEY:
        raise Unsupported(f"{where}: found the key {key!r}; text is expected")
    return key


def _unknown_value(where: str, origin: str) -> Unsupported:
    return Unsupported(
        f"{where}: its value comes from {origin}, which `muster import` can't call; write the value itself"
    )
