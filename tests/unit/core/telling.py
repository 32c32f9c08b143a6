"""What every status has to be, whatever was seen: each condition says why, and one thing has no plural."""

import re

from muster.api.status.status import Status

_ONE_OF_MANY = re.compile(r"\b1 (?:ranks|nodes|steps|others|files|of 1 )")


def well_told(status: Status) -> Status:
    """The same status. Raises AssertionError where it says nothing, or says it badly."""
    assert all(entry.message for entry in status.conditions), status.conditions
    for text in (status.message, *(entry.message for entry in status.conditions)):
        assert not _ONE_OF_MANY.search(text), text
    return status
