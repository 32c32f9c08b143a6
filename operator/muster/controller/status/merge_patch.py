"""What to send so that a document becomes another one: a JSON merge patch (RFC 7386)."""

from collections.abc import Mapping

from muster.api.document import JSON


def diff(before: Mapping[str, JSON], after: Mapping[str, JSON]) -> dict[str, JSON]:
    """The patch that makes `before` into `after`; empty when they are equal.

    Lists are sent whole. `after` holds no nulls: a merge patch can't write them.
    """
    patch: dict[str, JSON] = {key: None for key in before if key not in after}
    for key, value in after.items():
        entry = before.get(key)
        if key in before and entry == value:
            continue
        # Only what differs is sent of a map that was one before; anything else is replaced by a map as a whole.
        patch[key] = diff(entry, value) if isinstance(entry, dict) and isinstance(value, dict) else value
    return patch
