"""Compute a JSON merge patch (RFC 7386)."""

from collections.abc import Mapping

from muster.api.document import JSON


def make_merge_patch(before: Mapping[str, JSON], after: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the patch that changes `before` into `after`; empty if they are equal.

    Lists are replaced as a whole. `after` must not contain null, which a merge patch can't write.
    """
    patch: dict[str, JSON] = {key: None for key in before if key not in after}
    for key, value in after.items():
        entry = before.get(key)
        if key in before and entry == value:
            continue
        # Patch a map recursively; replace any other value as a whole.
        patch[key] = make_merge_patch(entry, value) if isinstance(entry, dict) and isinstance(value, dict) else value
    return patch
