"""`python -m suite`: all tests but the cluster's, side by side where they bear it.

Arguments are pytest's; `--long` chooses those that take minutes.
"""

import sys
from collections.abc import Sequence

from side_by_side import Part, run

SHORT = Part(marked="not long", beside=3)
"""Most of them wait for processes, so that more run than there are processors."""

LONG = Part(marked="long")


def main(arguments: Sequence[str]) -> int:
    """Run the tests; 0 when all that ran passed."""
    rest = [argument for argument in arguments if argument != "--long"]
    return run(LONG if len(rest) < len(arguments) else SHORT, rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
