"""Runs the cluster's tests, in parallel where possible, because most tests wait for pods most of the time."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cluster import choice
from cluster.choice import Own
from cluster.shared import SharedCluster
from cluster.traces import traces
from problems import Problem
from side_by_side import Part, run, run_together

TESTS = (Path(__file__).resolve().parent,)
SIDE_BY_SIDE = 4
WHOLE_RUN = "MUSTER_WHOLE_RUN"
"""Set for the tests that check the whole run: all others have run on this cluster."""


BEFORE = Part(TESTS, "own")
TOGETHER = (
    Part(TESTS, "troubled and not long"),
    Part(TESTS, "not own and not troubled and not alone and not long and not whole", SIDE_BY_SIDE),
)
ALONE = Part(TESTS, "alone and not long")
LONG = Part(TESTS, "long and not attack")
AFTER = Part(TESTS, "whole")


def run_short(arguments: Sequence[str]) -> list[Problem]:
    """Run the fast tests. The arguments are pytest's."""
    if not isinstance(choice.choose(choice.look()), Own):
        return run(Part(TESTS, "not long"), arguments)
    found = run(BEFORE, arguments)
    with kept_up(found):
        found += run_together(TOGETHER, arguments)
        found += run(ALONE, arguments)
        # A run of selected tests doesn't use all permissions.
        if not arguments:
            os.environ[WHOLE_RUN] = "yes"
        found += run(AFTER, arguments)
    return found


def run_long(arguments: Sequence[str]) -> list[Problem]:
    """Run the tests that take minutes. The arguments are pytest's."""
    if not isinstance(choice.choose(choice.look()), Own):
        return run(LONG, arguments)
    found: list[Problem] = []
    with kept_up(found):
        found += run(LONG, arguments)
    return found


@contextmanager
def kept_up(found: list[Problem]) -> Iterator[None]:
    """Yield a cluster that all parts share. What it leaves on the machine is a problem."""
    cluster, before = SharedCluster(), traces()
    cluster.up()
    if not cluster.kept and traces() == before:
        found.append(Problem("make cluster-down", ("what the tests look at can't tell a running cluster from none",)))
    try:
        yield
    finally:
        cluster.close()
    if not cluster.kept and (left := sorted(traces() - before)):
        found.append(Problem("make cluster-down", (f"it leaves: {', '.join(left)}",)))
