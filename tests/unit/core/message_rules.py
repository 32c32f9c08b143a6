"""Rules for every status: each condition has a message, and a single item has no plural."""

import re

from muster.api.status.status import Status

_ONE_OF_MANY = re.compile(r"(?<![\w.])1 (?:ranks|nodes|steps(?!/s)|others|files|of 1 )")


def check_messages(status: Status) -> Status:
    """Return the status. Raises AssertionError if a message is missing or wrong."""
    assert all(entry.message for entry in status.conditions), status.conditions
    for text in (status.message, *(entry.message for entry in status.conditions)):
        assert not _ONE_OF_MANY.search(text), text
    return status
