"""The contract's types as JSON and back: one strict decoder, driven by the types themselves.

What comes from a worker is not trusted: a wrong type, an unknown field, a missing one, NaN or a number out of range is
`Malformed` with the field's path, never a half-built object.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from functools import lru_cache
from typing import Any, Dict, Mapping, Tuple, Type, TypeVar, Union, get_type_hints

T = TypeVar("T")

MAX_INT = 2**63 - 1
"""Larger integers would not survive the resource's status (int64 in OpenAPI)."""


class Malformed(ValueError):
    """A document that isn't what its type says; the message names the field."""


def encode(value: object) -> bytes:
    """A contract value as JSON: UTF-8, keys sorted, so that the same value is always the same bytes."""
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        raise TypeError(f"{type(value).__name__} is not a value of the contract")
    text = json.dumps(dataclasses.asdict(value), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8")


def decode(cls: Type[T], data: bytes) -> T:
    """Read one `cls` from JSON. Raises `Malformed`; fields with a default may be missing, unknown ones are refused."""
    try:
        document = json.loads(data.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not JSON: {error}") from None
    result: T = _read(cls, document, cls.__name__)
    return result


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is not a JSON number")


@lru_cache(maxsize=None)
def _hints(cls: type) -> Dict[str, Any]:
    return get_type_hints(cls, vars(sys.modules[cls.__module__]))


def _read(hint: Any, value: Any, path: str) -> Any:
    if dataclasses.is_dataclass(hint):
        return _read_object(hint, value, path)
    origin = getattr(hint, "__origin__", None)
    arguments: Tuple[Any, ...] = getattr(hint, "__args__", ())
    if origin is Union:
        return _read_union(arguments, value, path)
    if origin is tuple:
        if not isinstance(value, list):
            raise Malformed(f"{path}: expected a list, found {_kind(value)}")
        return tuple(_read(arguments[0], item, f"{path}[{index}]") for index, item in enumerate(value))
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, dict):
            raise Malformed(f"{path}: expected an object, found {_kind(value)}")
        return {key: _read(arguments[1], item, f"{path}.{key}") for key, item in value.items()}
    return _read_scalar(hint, value, path)


def _read_object(cls: Any, value: Any, path: str) -> Any:
    if not isinstance(value, dict):
        raise Malformed(f"{path}: expected an object, found {_kind(value)}")
    fields = {field.name: field for field in dataclasses.fields(cls)}
    unknown = sorted(set(value) - set(fields))
    if unknown:
        raise Malformed(f"{path}.{unknown[0][:64]}: unknown field")
    hints = _hints(cls)
    read = {}
    for name, field in fields.items():
        if name in value:
            read[name] = _read(hints[name], value[name], f"{path}.{name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise Malformed(f"{path}.{name}: missing")
    return cls(**read)


def _read_union(options: Any, value: Any, path: str) -> Any:
    if value is None and type(None) in options:
        return None
    problems = []
    for option in options:
        if option is type(None):
            continue
        try:
            return _read(option, value, path)
        except Malformed as error:
            problems.append(str(error))
    raise Malformed(problems[0])


def _read_scalar(hint: Any, value: Any, path: str) -> Any:
    # bool is an int to Python, and an int is a float to people: neither mistake may reach a comparison
    if hint is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_INT:
        return float(value)
    if type(value) is not hint:
        raise Malformed(f"{path}: expected {hint.__name__}, found {_kind(value)}")
    if hint is int and abs(value) > MAX_INT:
        raise Malformed(f"{path}: out of the range of 64-bit integers")
    if hint is float and not math.isfinite(value):
        raise Malformed(f"{path}: not a finite number")
    return value


def _kind(value: Any) -> str:
    return "null" if value is None else type(value).__name__
