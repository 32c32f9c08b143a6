"""`python -m cluster.suite`: the cluster's tests, side by side where they bear it, and what that takes.

Most of them wait most of the time, for pods. Arguments are pytest's; `--long` chooses those that take minutes.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cluster import choice
from cluster.choice import Own
from cluster.shared import SharedCluster
from side_by_side import Part, run

TESTS = (Path(__file__).resolve().parent,)
SIDE_BY_SIDE = 3
WHOLE_RUN = "MUSTER_WHOLE_RUN"
"""Set for the tests that look back: all others have run on this cluster."""


BEFORE = Part(TESTS, "own")
SHORT = (
    Part(TESTS, "not own and not alone and not long and not whole", SIDE_BY_SIDE),
    Part(TESTS, "alone and not long"),
)
LONG = (Part(TESTS, "long and not attack"),)
AFTER = Part(TESTS, "whole")


def main(arguments: Sequence[str]) -> int:
    """Run the tests; 0 when all that ran passed."""
    rest = [argument for argument in arguments if argument != "--long"]
    is_long = len(rest) < len(arguments)
    if not isinstance(choice.choose(choice.look()), Own):
        return run(Part(TESTS, "long and not attack" if is_long else "not long"), rest)
    if is_long:
        with kept_up():
            return worst(run(part, rest) for part in LONG)
    codes = [run(BEFORE, rest)]
    with kept_up():
        codes += [run(part, rest) for part in SHORT]
        # Who chose some of the tests does not want to hear what the others would have used.
        if not rest:
            os.environ[WHOLE_RUN] = "yes"
        codes.append(run(AFTER, rest))
    return worst(codes)


@contextmanager
def kept_up() -> Iterator[None]:
    """A cluster that all parts share."""
    cluster = SharedCluster()
    cluster.up()
    try:
        yield
    finally:
        cluster.close()


def worst(codes: Iterator[int] | Sequence[int]) -> int:
    """0 when all are."""
    return max(codes, default=0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
