"""Parse JSON text as kubectl does, but reject duplicate keys. kubectl silently uses the last value of a key."""

import json
import math

from muster.api.document import JSON, quote
from muster.api.yaml.reader import ParseError
from muster.api.yaml.scalars import canonicalize_number


def read_json(text: str, start: int) -> tuple[JSON, int] | None:
    """Read the JSON object that begins at `start`; return its value and its end, or None if the text is not JSON.

    Raises `ParseError` for a duplicate key and for text that isn't Unicode.
    """
    decoder = json.JSONDecoder(
        object_pairs_hook=_read_object,
        parse_int=_read_integer,
        parse_float=_read_float,
        parse_constant=_reject_constant,
    )
    try:
        value, end = decoder.raw_decode(text, start)
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise ParseError("the text contains half of a surrogate pair, which is not a character") from None
    except ParseError:
        raise
    except (ValueError, RecursionError):
        return None
    return value, end


def _read_object(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _ in pairs]
        duplicate_key = next(name for name in names if names.count(name) > 1)
        raise ParseError(f"the key {quote(duplicate_key)} occurs twice")
    return result


def _read_integer(text: str) -> int | float:
    return _read_float(text) if len(text) > 20 else canonicalize_number(int(text))  # noqa: PLR2004  (a 64-bit integer has at most 20)


def _read_float(text: str) -> int | float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return canonicalize_number(value)


def _reject_constant(text: str) -> None:
    raise ValueError(text)
