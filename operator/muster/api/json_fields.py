"""Read JSON values of an expected type; a value of another type counts as missing. Pure."""

from muster.api.document import JSON


def string(value: JSON) -> str:
    """Return the text; "" for other types."""
    return value if isinstance(value, str) else ""


def integer(value: JSON) -> int | None:
    """Return the integer; None for other types."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def mapping(value: JSON) -> dict[str, JSON]:
    """Return the object; an empty one for other types."""
    return value if isinstance(value, dict) else {}


def objects(value: JSON) -> tuple[dict[str, JSON], ...]:
    """Return the objects in the list; none for other types."""
    return tuple(item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()
