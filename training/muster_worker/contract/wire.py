"""The contract's types as JSON and back: one strict decoder, driven by the types themselves.

What comes from a worker is not trusted: a wrong type, an unknown field, a missing one, NaN or a number out of range is
`Malformed` with the field's path, never a half-built object.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from functools import lru_cache, partial
from typing import Any, Callable, Hashable, Mapping, Tuple, Type, TypeVar, Union, cast, get_type_hints

from muster_worker.contract.schema import MAX_REPORT_BYTES

T = TypeVar("T")

MAX_INT = 2**63 - 1
"""Larger integers would not survive the resource's status (int64 in OpenAPI)."""


class Malformed(ValueError):
    """A document that isn't what its type says; the message names the field."""


def max_report_bytes(ranks: int) -> int:
    """The largest body of a node with so many ranks: tails of eight lines in any alphabet fit, and 256 metrics."""
    return min(MAX_REPORT_BYTES, 256 * 1024 + ranks * 32 * 1024)


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
    try:
        result: T = _reader(cast(Hashable, cls))(document)
    except _Wrong as wrong:
        raise Malformed(f"{cls.__name__}{wrong.path}: {wrong.problem}") from None
    return result


class _Wrong(Exception):
    """A value that isn't of its type. The path grows on the way out, so that good values cost no path."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.path = path


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is not a JSON number")


@lru_cache(maxsize=None)
def _reader(hint: Any) -> Callable[[Any], Any]:
    """What reads values of this type. Made once for each type: the collector reads thousands of reports a second."""
    if dataclasses.is_dataclass(hint):
        return _object_reader(hint)
    origin = getattr(hint, "__origin__", None)
    arguments: Tuple[Any, ...] = getattr(hint, "__args__", ())
    if origin is Union:
        return _union_reader(arguments)
    if origin is tuple:
        return _list_reader(_reader(arguments[0]))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping_reader(_reader(arguments[1]))
    return partial(_read_scalar, hint)


def _object_reader(cls: Any) -> Callable[[Any], Any]:
    hints = get_type_hints(cls, vars(sys.modules[cls.__module__]))
    fields = dataclasses.fields(cls)
    readers = tuple((field.name, _reader(hints[field.name])) for field in fields)
    names = frozenset(field.name for field in fields)
    required = tuple(field.name for field in fields if _is_required(field))

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _Wrong(f"expected an object, found {_kind(value)}")
        if not value.keys() <= names:
            raise _Wrong("unknown field", f".{min(value.keys() - names)[:64]}")
        for name in required:
            if name not in value:
                raise _Wrong("missing", f".{name}")
        result = {}
        for name, read_field in readers:
            if name in value:
                try:
                    result[name] = read_field(value[name])
                except _Wrong as wrong:
                    raise _Wrong(wrong.problem, f".{name}{wrong.path}") from None
        return cls(**result)

    return read


def _is_required(field: Any) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _union_reader(options: Tuple[Any, ...]) -> Callable[[Any], Any]:
    readers = tuple(_reader(option) for option in options if option is not type(None))
    may_be_null = type(None) in options

    def read(value: Any) -> Any:
        if value is None and may_be_null:
            return None
        problems = []
        for read_option in readers:
            try:
                return read_option(value)
            except _Wrong as wrong:
                problems.append(wrong)
        raise problems[0]

    return read


def _list_reader(read_item: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, list):
            raise _Wrong(f"expected a list, found {_kind(value)}")
        result = []
        for item in value:
            try:
                result.append(read_item(item))
            except _Wrong as wrong:
                raise _Wrong(wrong.problem, f"[{len(result)}]{wrong.path}") from None
        return tuple(result)

    return read


def _mapping_reader(read_item: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _Wrong(f"expected an object, found {_kind(value)}")
        result = {}
        for key, item in value.items():
            try:
                result[key] = read_item(item)
            except _Wrong as wrong:
                raise _Wrong(wrong.problem, f".{key}{wrong.path}") from None
        return result

    return read


def _read_scalar(hint: Any, value: Any) -> Any:
    # bool is an int to Python, and an int is a float to people: neither mistake may reach a comparison
    if hint is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_INT:
        return float(value)
    if type(value) is not hint:
        raise _Wrong(f"expected {hint.__name__}, found {_kind(value)}")
    if hint is int and abs(value) > MAX_INT:
        raise _Wrong("out of the range of 64-bit integers")
    if hint is float and not math.isfinite(value):
        raise _Wrong("not a finite number")
    return value


def _kind(value: Any) -> str:
    return "null" if value is None else type(value).__name__
