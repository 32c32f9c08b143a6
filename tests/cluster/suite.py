"""Runs the cluster's tests, in parallel where possible, because most tests wait for pods most of the time."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cluster import choice
from cluster.choice import Own
from cluster.shared import SharedCluster
from problems import Problem
from side_by_side import Part, run

TESTS = (Path(__file__).resolve().parent,)
SIDE_BY_SIDE = 3
WHOLE_RUN = "MUSTER_WHOLE_RUN"
"""Set for the tests that check the whole run: all others have run on this cluster."""


BEFORE = Part(TESTS, "own")
SHORT = (
    Part(TESTS, "not own and not alone and not long and not whole", SIDE_BY_SIDE),
    Part(TESTS, "alone and not long"),
)
LONG = Part(TESTS, "long and not attack")
AFTER = Part(TESTS, "whole")


def run_short(arguments: Sequence[str]) -> list[Problem]:
    """Run the fast tests. The arguments are pytest's."""
    if not isinstance(choice.choose(choice.look()), Own):
        return run(Part(TESTS, "not long"), arguments)
    found = run(BEFORE, arguments)
    with kept_up():
        for part in SHORT:
            found += run(part, arguments)
        # A run of selected tests doesn't use all permissions.
        if not arguments:
            os.environ[WHOLE_RUN] = "yes"
        return found + run(AFTER, arguments)


def run_long(arguments: Sequence[str]) -> list[Problem]:
    """Run the tests that take minutes. The arguments are pytest's."""
    if not isinstance(choice.choose(choice.look()), Own):
        return run(LONG, arguments)
    with kept_up():
        return run(LONG, arguments)


@contextmanager
def kept_up() -> Iterator[None]:
    """Yield a cluster that all parts share."""
    cluster = SharedCluster()
    cluster.up()
    try:
        yield
    finally:
        cluster.close()
