"""How many examples a Hypothesis search tries: few in `make test`, many in `make test-long`."""

import os

AT_LENGTH = "MUSTER_TEST_AT_LENGTH"
"""Set by `make test-long`, but not in CI: every search tries its full number of examples."""

SHARE = 3
"""`make test` tries one example of so many."""


def choose_example_count(at_length: int, share: int = SHARE) -> int:
    """Return the number of examples of a search that tries this many in a developer's `make test-long`.

    `share` is larger than `SHARE` where an example takes tens of milliseconds.
    """
    return at_length if os.environ.get(AT_LENGTH) else at_length // share
