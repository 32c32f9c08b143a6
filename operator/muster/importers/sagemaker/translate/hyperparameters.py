"""Hyperparameters: as numbers, texts and truth values where the job sends them as the SDK does, else as sent. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from muster.api.document import JSON
from muster.importers.sagemaker.translate.reading import Problems
from muster.importers.sagemaker.translate.recording import Value

Encoding = Literal["Json", "Str", "Bare"]
"""How the SDK makes text of a value. Json: json.dumps. Str: str. Bare: text as it is, json.dumps for all else."""

_MAX_INTEGER = 2**63 - 1


@dataclass(frozen=True)
class Hyperparameters:
    """`plain` are those that mean the same on every backend, `raw` those whose text SageMaker is sent as it stands."""

    plain: dict[str, JSON]
    raw: dict[str, JSON]


def hyperparameters(
    fields: Mapping[str, Value], sdk: Encoding, muster: Encoding | None, where: str, problems: Problems
) -> Hyperparameters:
    """The hyperparameters `fields`, which the SDK encodes as `sdk` says, and muster a job's as `muster` says.

    `muster` None: as those of a job they would mean something else.
    """
    plain: dict[str, JSON] = {}
    raw: dict[str, JSON] = {}
    for name, value in fields.items():
        text = _text(value, sdk)
        if text is None:
            problems.add(
                where, f"{name} is built by a class; text, numbers, truth values, lists and dictionaries are expected"
            )
        elif (
            muster is not None
            and _survives(value)
            and text == _text(value, muster)
            and isinstance(value, (bool, int, float, str))
        ):
            plain[name] = value
        else:
            raw[name] = text
    return Hyperparameters(plain, raw)


def _survives(value: Value) -> bool:
    """Whether the value comes back from a file as it was: 1.0 is 1 to Kubernetes, and larger numbers lose digits."""
    if isinstance(value, (bool, str)):
        return True
    if isinstance(value, int):
        return abs(value) <= _MAX_INTEGER
    return isinstance(value, float) and not value.is_integer()


def _text(value: Value, encoding: Encoding) -> str | None:
    if encoding == "Str":
        return str(value)
    if encoding == "Bare" and isinstance(value, str):
        return value
    try:
        return json.dumps(value)
    except TypeError:
        return None
