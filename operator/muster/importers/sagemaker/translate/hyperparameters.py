"""Convert hyperparameters to values if muster encodes them as the SDK does, else to encoded text. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from muster.api.document import JSON
from muster.importers.sagemaker.translate.arguments import Problems
from muster.importers.sagemaker.translate.recording import Value

Encoding = Literal["Json", "Str", "Bare"]
"""An encoding of values. Json uses json.dumps, Str uses str, and Bare uses json.dumps for all types except text."""

_MAX_INTEGER = 2**63 - 1


@dataclass(frozen=True)
class Hyperparameters:
    """`values` are for every backend. `raw_texts` are texts that muster sends to SageMaker unchanged."""

    values: dict[str, JSON]
    raw_texts: dict[str, JSON]


def convert_hyperparameters(
    fields: Mapping[str, Value],
    sdk_encoding: Encoding,
    muster_encoding: Encoding | None,
    location: str,
    problems: Problems,
) -> Hyperparameters:
    """Convert `fields`. `muster_encoding` is the encoding that muster uses for the hyperparameters of the job.

    If `muster_encoding` is None, return all hyperparameters as encoded text.
    """
    values: dict[str, JSON] = {}
    raw_texts: dict[str, JSON] = {}
    for name, value in fields.items():
        text = _encode(value, sdk_encoding)
        if text is None:
            problems.add(
                location, f"{name} is an object; text, numbers, truth values, lists and dictionaries are expected"
            )
        elif (
            muster_encoding is not None
            and _is_preserved(value)
            and text == _encode(value, muster_encoding)
            and isinstance(value, (bool, int, float, str))
        ):
            values[name] = value
        else:
            raw_texts[name] = text
    return Hyperparameters(values, raw_texts)


def _is_preserved(value: Value) -> bool:
    """Whether YAML and Kubernetes preserve the value. They convert 1.0 to 1, and round large integers."""
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
