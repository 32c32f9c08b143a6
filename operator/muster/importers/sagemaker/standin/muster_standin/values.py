"""Encode the arguments of estimators and trainers as JSON for the parent process."""

from __future__ import annotations

import enum
import math

from .refused import Refused
from .shapes import Shape
from .unknown import Unknown, unknown_origin

SHAPE = "$shape"
"""The key that marks an object of an SDK class, as opposed to the script's own dictionaries."""


def encoded(value: object, where: str) -> object:
    """Encode the value as JSON. Raises `Refused` with `where` for a value that a file can't contain."""
    if isinstance(value, Unknown):
        raise _unknown(where, value.origin)
    if isinstance(value, enum.Enum):
        return encoded(value.value, where)
    if isinstance(value, Shape):
        fields = {name: encoded(field, f"{where}.{name}") for name, field in value.given().items()}
        return {SHAPE: type(value).__name__, "fields": fields}
    if isinstance(value, dict):
        return {_key(key, where): encoded(entry, f"{where}[{key!r}]") for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [encoded(entry, f"{where}[{index}]") for index, entry in enumerate(value)]
    return _scalar(value, where)


def _scalar(value: object, where: str) -> object:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Refused(f"{where}: found {value}; a finite number is expected")
        return float(value)
    if isinstance(value, str):
        origin = unknown_origin(value)
        if origin is not None:
            raise _unknown(where, origin)
        return str(value)
    raise Refused(
        f"{where}: found a {type(value).__name__}; text, numbers, truth values, lists and dictionaries of them "
        "can be written into a file"
    )


def _key(key: object, where: str) -> str:
    if not isinstance(key, str) or key == SHAPE:
        raise Refused(f"{where}: found the key {key!r}; text is expected")
    return key


def _unknown(where: str, origin: str) -> Refused:
    return Refused(f"{where}: its value comes from {origin}, which `muster import` can't call; write the value itself")
