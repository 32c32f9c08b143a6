"""Values of JSON by their kind: what is of another kind counts as absent. Pure."""

from muster.api.document import JSON


def string(value: JSON) -> str:
    """The text; "" for anything else."""
    return value if isinstance(value, str) else ""


def whole(value: JSON) -> int | None:
    """The whole number; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def mapping(value: JSON) -> dict[str, JSON]:
    """The object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def objects(value: JSON) -> tuple[dict[str, JSON], ...]:
    """The objects of the list; none for anything else."""
    return tuple(item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()
