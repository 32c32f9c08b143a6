"""How many examples a Hypothesis search tries: few in `make test`, many in `make test-long`."""

import os

AT_LENGTH = "MUSTER_TEST_AT_LENGTH"
"""Set by `make test-long`: every search tries its full number of examples."""

SHARE = 3
"""`make test` tries one example of so many."""

CI = "CI"
CI_SHARE = 2
"""CI has limited time: its `make test-long` tries one example of so many. Each run tries other examples."""


def choose_example_count(at_length: int) -> int:
    """Return the number of examples of a search that tries this many in a developer's `make test-long`."""
    if not os.environ.get(AT_LENGTH):
        return at_length // SHARE
    return at_length // CI_SHARE if os.environ.get(CI) else at_length
