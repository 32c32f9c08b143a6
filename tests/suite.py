"""`python -m suite`: all tests but the cluster's, side by side where they bear it. Arguments are pytest's."""

import sys

from side_by_side import Part, run

TESTS = Part(beside=3)
"""Most of them wait for processes, so that more run than there are processors."""


if __name__ == "__main__":
    sys.exit(run(TESTS, sys.argv[1:]))
