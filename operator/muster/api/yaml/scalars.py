r"""Interpret plain YAML scalars as kubectl does.

kubectl reads YAML with sigs.k8s.io/yaml, a fork of go-yaml v2, which follows neither YAML 1.1 nor 1.2: `y` is true,
`3e-5` and `1_000` are numbers, `010` and `08` are both 8, `1:30` and dates are text. This module follows go-yaml's
resolve.go (go.yaml.in/yaml/v2 2.4.4); tests/unit/api/kubectl_scalars.json has kubectl's results.
"""

import math
import re
from decimal import Decimal
from typing import TypeAlias

Scalar: TypeAlias = bool | int | float | str | None

_TRUE = {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"}
_FALSE = {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"}
_NULL = {"", "~", "null", "Null", "NULL"}
_NOT_FINITE = {
    sign + word for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")
} | {".nan", ".NaN", ".NAN"}  # fmt: skip

_INTEGER = re.compile(
    r"[+-]?(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<bin>[01]+)|(?P<oct>0[oO]?[0-7]+)|(?P<dec>0|[1-9][0-9]*))"
)
_BINARY = re.compile(r"(-?)0b([+-]?[01]+)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_POINT_FLOAT = re.compile(r"\.[0-9](_?[0-9])*([eE][-+]?[0-9](_?[0-9])*)?")

_INT64 = range(-(2**63), 2**63)
_UINT64_END = 2**64
_DECIMAL_DIGITS = len(str(_UINT64_END))
"""Maximum number of digits that Python parses here; a number with more digits exceeds 64 bits."""


class NotJSON(ValueError):
    """A value that JSON can't represent."""


def resolve_scalar(text: str) -> Scalar:
    """Return the value of a plain scalar. Raises `NotJSON` for infinity and NaN."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if text in _NULL:
        return None
    if text in _NOT_FINITE:
        raise NotJSON(f"JSON can't represent the number {text}; write a finite number, or put the text in quotes")
    number = _parse_number(text)
    return text if number is None else number


def canonicalize_number(number: float) -> int | float:
    """Return the number as the API server receives it: 1.0 as 1, and integers beyond 64 bits as floats."""
    if isinstance(number, int):
        return number if number in _INT64 else float(number)
    if not number.is_integer() or abs(number) >= _INT64.stop:
        return number
    # Go writes a whole float as its shortest digits and zeros, which the API server reads as an integer.
    whole_number = int(Decimal(repr(number)))
    return whole_number if whole_number in _INT64 else number


def _parse_number(text: str) -> int | float | None:
    if text[0] == ".":
        return _parse_finite(text.replace("_", "")) if _POINT_FLOAT.fullmatch(text) else None
    if text[0] not in "+-0123456789":
        return None
    digits_text = text.replace("_", "")
    integer = _parse_integer(digits_text)
    if integer is not None:
        return canonicalize_number(integer)
    return _parse_finite(digits_text) if _FLOAT.fullmatch(digits_text) else None


def _parse_integer(digits_text: str) -> int | None:
    match = _INTEGER.fullmatch(digits_text)
    if match is None:
        # go-yaml parses binary numbers twice, the second time without the prefix, so it accepts a second sign.
        binary = _BINARY.fullmatch(digits_text)
        return None if binary is None or (binary[1] and binary[2][0] in "+-") else int(binary[1] + binary[2], 2)
    groups = match.groupdict()
    base = next(name for name, digits in groups.items() if digits is not None)
    digits = groups[base]
    if base == "dec" and len(digits) > _DECIMAL_DIGITS:
        return None
    magnitude = int(digits.lower().replace("o", ""), {"hex": 16, "bin": 2, "oct": 8, "dec": 10}[base])
    value = -magnitude if digits_text[0] == "-" else magnitude
    # Go rejects an integer beyond 64 bits and then tries to parse a float.
    is_in_range = value in _INT64 or (digits_text[0] not in "+-" and value < _UINT64_END)
    return value if is_in_range else None


def _parse_finite(digits_text: str) -> int | float | None:
    value = float(digits_text)
    return canonicalize_number(value) if math.isfinite(value) else None
