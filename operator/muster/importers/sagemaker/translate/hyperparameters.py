"""Convert hyperparameters: to plain values if muster encodes them as the SDK does, else to encoded text. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from muster.api.document import JSON
from muster.importers.sagemaker.translate.arguments import Problems
from muster.importers.sagemaker.translate.recording import Value

Encoding = Literal["Json", "Str", "Bare"]
"""How the SDK encodes a value. Json: json.dumps. Str: str. Bare: text unchanged, json.dumps for other types."""

_MAX_INTEGER = 2**63 - 1


@dataclass(frozen=True)
class Hyperparameters:
    """`plain` has values for every backend, `raw` has text that muster sends to SageMaker unchanged."""

    plain: dict[str, JSON]
    raw: dict[str, JSON]


def convert_hyperparameters(
    fields: Mapping[str, Value], sdk: Encoding, muster: Encoding | None, where: str, problems: Problems
) -> Hyperparameters:
    """Encode `fields`; `sdk` is the SDK's encoding, `muster` is muster's for a job.

    `muster` None: plain values would have another meaning in the job.
    """
    plain: dict[str, JSON] = {}
    raw: dict[str, JSON] = {}
    for name, value in fields.items():
        text = _encode(value, sdk)
        if text is None:
            problems.add(
                where, f"{name} is built by a class; text, numbers, truth values, lists and dictionaries are expected"
            )
        elif (
            muster is not None
            and _is_preserved(value)
            and text == _encode(value, muster)
            and isinstance(value, (bool, int, float, str))
        ):
            plain[name] = value
        else:
            raw[name] = text
    return Hyperparameters(plain, raw)


def _is_preserved(value: Value) -> bool:
    """Whether YAML and Kubernetes preserve the value: 1.0 becomes 1, and large integers lose digits."""
    if isinstance(value, (bool, str)):
        return True
    if isinstance(value, int):
        return abs(value) <= _MAX_INTEGER
    return isinstance(value, float) and not value.is_integer()


def _encode(value: Value, encoding: Encoding) -> str | None:
    if encoding == "Str":
        return str(value)
    if encoding == "Bare" and isinstance(value, str):
        return value
    try:
        return json.dumps(value)
    except TypeError:
        return None
