"""Truncate the lists and maps of a spec that are too long, before pydantic validates their entries.

Otherwise pydantic would report every entry of a long invalid list, because its length limit counts only valid entries.
The limits come from the types, because building the spec's schema takes much longer than validating a spec.
"""

from collections.abc import Iterator
from functools import lru_cache
from types import UnionType
from typing import Union, get_args, get_origin

from annotated_types import MaxLen
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from muster.api.document import JSON, FieldPath
from muster.api.spec.job import Spec

LengthProblem = tuple[FieldPath, str]
"""A field's path and the message about its length."""


def truncate_lists(spec: dict[str, JSON]) -> tuple[dict[str, JSON], list[LengthProblem]]:
    """Truncate each list and map of the spec to its maximum length; return the spec and the problems."""
    problems: list[LengthProblem] = []
    return _truncate_fields(spec, Spec, ("spec",), problems), problems


def _truncate_fields(
    value: dict[str, JSON], model: type[BaseModel], path: FieldPath, problems: list[LengthProblem]
) -> dict[str, JSON]:
    fields = _get_fields(model)
    return {
        key: _truncate(item, fields[key], (*path, key), problems) if key in fields else item
        for key, item in value.items()
    }


def _truncate(value: JSON, field: FieldInfo, path: FieldPath, problems: list[LengthProblem]) -> JSON:
    if not isinstance(value, list | dict):
        return value
    for option in _list_alternatives(field):
        arguments = get_args(option.annotation)
        match value, get_origin(option.annotation):
            case list(), origin if origin is tuple:
                entry = FieldInfo.from_annotation(arguments[0])
                allowed_items = value[: _check_length(option, len(value), path, problems)]
                return [_truncate(item, entry, (*path, index), problems) for index, item in enumerate(allowed_items)]
            case dict(), origin if origin is dict:
                entry = FieldInfo.from_annotation(arguments[1])
                maximum = _check_length(option, len(value), path, problems)
                return {
                    key: _truncate(item, entry, (*path, key), problems) for key, item in list(value.items())[:maximum]
                }
            case dict(), None if isinstance(option.annotation, type) and issubclass(option.annotation, BaseModel):
                return _truncate_fields(value, option.annotation, path, problems)
    return value


@lru_cache
def _get_fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    return {str(field.alias): field for field in model.model_fields.values()}


def _list_alternatives(field: FieldInfo) -> Iterator[FieldInfo]:
    """Yield the members of a union, and any other type as it is."""
    if get_origin(field.annotation) in (Union, UnionType):
        yield from map(FieldInfo.from_annotation, get_args(field.annotation))
    else:
        yield field


def _check_length(field: FieldInfo, count: int, path: FieldPath, problems: list[LengthProblem]) -> int:
    """Return how many of `count` entries to validate; append a problem if there are more than allowed."""
    maximum = next((item.max_length for item in field.metadata if isinstance(item, MaxLen)), count)
    if count > maximum:
        problems.append((path, f"found {count} entries; at most {maximum} are allowed"))
    return min(count, maximum)
