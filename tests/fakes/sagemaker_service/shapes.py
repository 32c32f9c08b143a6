"""Validates a request against SageMaker's own model, including the constraints that botocore does not check."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from botocore.model import ListShape, MapShape, OperationModel, ServiceModel, Shape, StructureShape
from botocore.session import Session
from botocore.validate import ParamValidator

from fakes.sagemaker_service.refusal import make_validation_refusal


@cache
def load_service_model() -> ServiceModel:
    return Session().get_service_model("sagemaker")


@cache
def load_operation_model(name: str) -> OperationModel:
    return load_service_model().operation_model(name)


def check(name: str, request: Mapping[str, object]) -> None:
    """Raises Refusal, with the service's message."""
    shape = load_operation_model(name).input_shape
    assert shape is not None
    report = ParamValidator().validate(request, shape)
    if report.has_errors():
        raise make_validation_refusal(report.generate_report())
    problems = list(_find_problems(request, shape, ""))
    if problems:
        count = f"{len(problems)} validation error{'s' if len(problems) > 1 else ''} detected: "
        raise make_validation_refusal(count + "; ".join(problems))


def _find_problems(value: object, shape: Shape, path: str) -> Iterator[str]:
    if isinstance(shape, StructureShape):
        assert isinstance(value, Mapping)
        for key, member in value.items():
            yield from _find_problems(
                member, shape.members[key], f"{path}.{_lower_first_letter(key)}" if path else _lower_first_letter(key)
            )
        return
    yield from (
        f"Value '{value}' at '{path}' failed to satisfy constraint: {rule}"
        for rule in _find_broken_limits(value, shape)
    )
    if isinstance(shape, ListShape):
        assert isinstance(value, list)
        for index, member in enumerate(value, 1):
            yield from _find_problems(member, shape.member, f"{path}.{index}.member")
    elif isinstance(shape, MapShape):
        assert isinstance(value, Mapping)
        for key, member in value.items():
            yield from _find_problems(key, shape.key, f"{path}.key")
            yield from _find_problems(member, shape.value, f"{path}.{key}.member")


def _find_broken_limits(value: object, shape: Shape) -> Iterator[str]:
    limits = shape.metadata
    size = len(value) if isinstance(value, str | list | Mapping) else value
    word = "length " if isinstance(value, str | list | Mapping) else "value "
    # Times have no limits.
    if isinstance(size, int):
        if "max" in limits and size > limits["max"]:
            yield f"Member must have {word}less than or equal to {limits['max']}"
        if "min" in limits and size < limits["min"]:
            yield f"Member must have {word}greater than or equal to {limits['min']}"
    if not isinstance(value, str):
        return
    if "enum" in limits and value not in limits["enum"]:
        yield f"Member must satisfy enum value set: [{', '.join(limits['enum'])}]"
    pattern = limits.get("pattern")
    # Python's `re` has no Unicode classes.
    if pattern is not None and "\\p{" not in pattern and not re.fullmatch(pattern, value, re.DOTALL):
        yield f"Member must satisfy regular expression pattern: {pattern}"


def _lower_first_letter(name: str) -> str:
    return name[:1].lower() + name[1:]
