"""Read JSON values of an expected type. A value of another type counts as missing. Pure."""

from muster.api.document import JSON


def read_string(value: JSON) -> str:
    """Return the text; "" for other types."""
    return value if isinstance(value, str) else ""


def read_integer(value: JSON) -> int | None:
    """Return the integer; None for other types."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def read_mapping(value: JSON) -> dict[str, JSON]:
    """Return the JSON object as a dict; an empty dict for other types."""
    return value if isinstance(value, dict) else {}


def read_mappings(value: JSON) -> tuple[dict[str, JSON], ...]:
    """Return the JSON objects in the list; () for other types."""
    return tuple(item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()
