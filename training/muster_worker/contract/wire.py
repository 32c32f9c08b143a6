"""Encodes the contract's types as JSON, and decodes them strictly by their type hints.

Input from an agent is untrusted. A wrong type, an unknown or missing field, NaN or a number out of range raises
`MalformedDocument` with the field's path.
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
"""Larger integers don't fit the resource's status (int64 in OpenAPI)."""


class MalformedDocument(ValueError):
    """The document doesn't match its type. The message has the field's path."""


def compute_max_report_bytes(ranks: int) -> int:
    """Return the limit for the report of a node with this number of ranks: eight lines each, and 256 metrics."""
    return min(MAX_REPORT_BYTES, 256 * 1024 + ranks * 32 * 1024)


def encode(value: object) -> bytes:
    """Encode a contract value as JSON in UTF-8. Keys are sorted: equal values give equal bytes."""
    # The encoder calls `_list_fields` for each value. `dataclasses.asdict` would copy all of them, five times slower.
    text = json.dumps(_list_fields(value), default=_list_fields, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8")


def _list_fields(value: object) -> Mapping[str, object]:
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        raise TypeError(f"{type(value).__name__} is not a value of the contract")
    return vars(value)


def decode(cls: Type[T], data: bytes) -> T:
    """Decode a `cls` from JSON. Fields with a default are optional; unknown fields raise `MalformedDocument`."""
    try:
        document = json.loads(data.decode("utf-8"), parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        raise MalformedDocument(f"not JSON: {error}") from None
    try:
        result: T = _build_reader(cast(Hashable, cls))(document)
    except _WrongValue as error:
        raise MalformedDocument(f"{cls.__name__}{error.path}: {error.problem}") from None
    return result


class _WrongValue(Exception):
    """A value of the wrong type. Each caller adds its field to the path, so that valid values need no path."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.path = path


def _reject_constant(text: str) -> None:
    raise ValueError(f"{text} is not a JSON number")


@lru_cache(maxsize=None)
def _build_reader(hint: Any) -> Callable[[Any], Any]:
    """Return the decoder of a type, cached: the collector decodes thousands of reports per second."""
    if dataclasses.is_dataclass(hint):
        return _build_object_reader(hint)
    origin = getattr(hint, "__origin__", None)
    arguments: Tuple[Any, ...] = getattr(hint, "__args__", ())
    if origin is Union:
        return _build_union_reader(arguments)
    if origin is tuple:
        return _build_list_reader(_build_reader(arguments[0]))
    if origin is not None and issubclass(origin, Mapping):
        return _build_mapping_reader(_build_reader(arguments[1]))
    return _build_scalar_reader(hint)


def _build_object_reader(cls: Any) -> Callable[[Any], Any]:
    hints = get_type_hints(cls, vars(sys.modules[cls.__module__]))
    fields = dataclasses.fields(cls)
    readers = tuple((field.name, _build_reader(hints[field.name])) for field in fields)
    names = frozenset(field.name for field in fields)
    required = frozenset(field.name for field in fields if _is_required(field))

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _WrongValue(f"expected an object, found {_describe_type(value)}")
        if not value.keys() <= names:
            raise _WrongValue("unknown field", f".{min(value.keys() - names)[:64]}")
        if not value.keys() >= required:
            raise _WrongValue("missing", f".{min(required - value.keys())}")
        result = {}
        for name, read_field in readers:
            if name in value:
                try:
                    result[name] = read_field(value[name])
                except _WrongValue as error:
                    raise _WrongValue(error.problem, f".{name}{error.path}") from None
        return cls(**result)

    return read


def _is_required(field: Any) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _build_union_reader(options: Tuple[Any, ...]) -> Callable[[Any], Any]:
    readers = tuple(_build_reader(option) for option in options if option is not type(None))
    may_be_null = type(None) in options

    def read(value: Any) -> Any:
        if value is None and may_be_null:
            return None
        problems = []
        for read_option in readers:
            try:
                return read_option(value)
            except _WrongValue as error:
                problems.append(error)
        raise problems[0]

    return read


def _build_list_reader(read_item: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, list):
            raise _WrongValue(f"expected a list, found {_describe_type(value)}")
        result = []
        for item in value:
            try:
                result.append(read_item(item))
            except _WrongValue as error:
                raise _WrongValue(error.problem, f"[{len(result)}]{error.path}") from None
        return tuple(result)

    return read


def _build_mapping_reader(read_item: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _WrongValue(f"expected an object, found {_describe_type(value)}")
        result = {}
        for key, item in value.items():
            try:
                result[key] = read_item(item)
            except _WrongValue as error:
                raise _WrongValue(error.problem, f".{key}{error.path}") from None
        return result

    return read


def _build_scalar_reader(hint: Any) -> Callable[[Any], Any]:
    # Most values are texts: the command that starts a large job has some for each node.
    if hint not in (str, bool):
        return partial(_read_scalar, hint)

    def read(value: Any) -> Any:
        return value if type(value) is hint else _read_scalar(hint, value)

    return read


def _read_scalar(hint: Any, value: Any) -> Any:
    # In Python bool is an int; in JSON 1 is a valid float.
    if hint is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_INT:
        return float(value)
    if type(value) is not hint:
        raise _WrongValue(f"expected {hint.__name__}, found {_describe_type(value)}")
    if hint is int and abs(value) > MAX_INT:
        raise _WrongValue("out of the range of 64-bit integers")
    if hint is float and not math.isfinite(value):
        raise _WrongValue("not a finite number")
    return value


def _describe_type(value: Any) -> str:
    return "null" if value is None else type(value).__name__
