"""Read JSON text as kubectl does, but refuse a duplicate key: kubectl would silently take its last value."""

import json
import math

from muster.api.document import JSON, quoted
from muster.api.yaml.reader import Unreadable
from muster.api.yaml.scalars import canonical


def read_json(text: str, start: int) -> tuple[JSON, int] | None:
    """Read the JSON object that begins at `start`: return its value and its end, or None if it is not JSON.

    Raises `Unreadable` for a duplicate key and for text that isn't Unicode.
    """
    decoder = json.JSONDecoder(
        object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_refuse_constant
    )
    try:
        value, end = decoder.raw_decode(text, start)
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise Unreadable("half of a surrogate pair is no character") from None
    except Unreadable:
        raise
    except (ValueError, RecursionError):
        return None
    return value, end


def _object(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Unreadable(f"the key {quoted(twice)} occurs twice")
    return result


def _integer(text: str) -> int | float:
    return _float(text) if len(text) > 20 else canonical(int(text))  # noqa: PLR2004  (64 bits have 20 characters)


def _float(text: str) -> int | float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return canonical(value)


def _refuse_constant(text: str) -> None:
    raise ValueError(text)
