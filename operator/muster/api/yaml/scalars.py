r"""How kubectl interprets a plain YAML scalar.

kubectl reads YAML with sigs.k8s.io/yaml, that is go-yaml v2, whose rules are neither YAML 1.1's nor 1.2's: `y` is true,
`3e-5` and `1_000` are numbers, `010` and `08` are both 8, `1:30` and dates are text. This module follows its
resolve.go (go.yaml.in/yaml/v2 2.4.4); tests/unit/api/kubectl_scalars.json has its results.
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
"""A number with more digits exceeds 64 bits. Python limits the digits that it parses (sys.set_int_max_str_digits)."""


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
        raise NotJSON(f"{text} is not a number that JSON can hold; write a finite number, or quote it to mean the text")
    number = _parse_number(text)
    return text if number is None else number


def canonical_number(number: float) -> int | float:
    """Return the number as the API server receives it: 1.0 as 1, and integers beyond 64 bits as floats."""
    if isinstance(number, int):
        return number if number in _INT64 else float(number)
    if not number.is_integer() or abs(number) >= _INT64.stop:
        return number
    # Go writes a whole float's shortest digits, padded by zeros; the server reads those as an integer
    whole = int(Decimal(repr(number)))
    return whole if whole in _INT64 else number


def _parse_number(text: str) -> int | float | None:
    if text[0] == ".":
        return _parse_finite(text.replace("_", "")) if _POINT_FLOAT.fullmatch(text) else None
    if text[0] not in "+-0123456789":
        return None
    plain = text.replace("_", "")
    integer = _parse_integer(plain)
    if integer is not None:
        return canonical_number(integer)
    return _parse_finite(plain) if _FLOAT.fullmatch(plain) else None


def _parse_integer(plain: str) -> int | None:
    match = _INTEGER.fullmatch(plain)
    if match is None:
        # go-yaml parses binary twice, the second time without the prefix, and so accepts a second sign
        binary = _BINARY.fullmatch(plain)
        return None if binary is None or (binary[1] and binary[2][0] in "+-") else int(binary[1] + binary[2], 2)
    groups = match.groupdict()
    kind = next(name for name, digits in groups.items() if digits is not None)
    digits = groups[kind]
    if kind == "dec" and len(digits) > _DECIMAL_DIGITS:
        return None
    size = int(digits.lower().replace("o", ""), {"hex": 16, "bin": 2, "oct": 8, "dec": 10}[kind])
    value = -size if plain[0] == "-" else size
    # Go refuses an integer beyond 64 bits and then tries to parse a float
    fits = value in _INT64 or (plain[0] not in "+-" and value < _UINT64_END)
    return value if fits else None


def _parse_finite(plain: str) -> int | float | None:
    value = float(plain)
    return canonical_number(value) if math.isfinite(value) else None
