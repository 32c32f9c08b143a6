"""Rules for the messages of every status: each condition has a message, and the number 1 is followed by a singular."""

import re

from muster.api.status.status import Status

_PLURAL_AFTER_ONE = re.compile(r"(?<![\w.])1 (?:ranks|nodes|steps(?!/s)|others|files|of 1 )")


def check_messages(status: Status) -> Status:
    """Return the status. Raises AssertionError if a message is missing or has a wrong plural."""
    assert all(entry.message for entry in status.conditions), status.conditions
    for text in (status.message, *(entry.message for entry in status.conditions)):
        assert not _PLURAL_AFTER_ONE.search(text), text
    return status
