"""The collective that some ranks wait in and others have not entered, from the last collectives of each rank."""

import time

import pytest

from muster.core.blocked_collective import BlockedCollective, find_blocked_collective
from muster_worker.contract.collectives import GroupCollective

WORLD = "0 (default_pg)"
DATA = "1 (mesh_dp)"


def waits(operation: str, sequence: int, group: str = WORLD, last: tuple[str, int] | None = None) -> GroupCollective:
    entered = last or (operation, sequence)
    return GroupCollective(group, *entered, operation, sequence)


def done(operation: str, sequence: int, group: str = WORLD) -> GroupCollective:
    return GroupCollective(group, operation, sequence)


@pytest.mark.parametrize(
    ("collectives", "wanted"),
    [
        pytest.param({}, None, id="nothing recorded"),
        pytest.param({0: (done("all_reduce", 4),), 1: (done("all_reduce", 4),)}, None, id="no rank waits"),
        pytest.param({0: (waits("all_reduce", 4),), 1: (waits("all_reduce", 4),)}, None, id="all have entered it"),
        pytest.param(
            {0: (waits("all_reduce", 4),), 1: (done("all_reduce", 3),), 2: (waits("all_reduce", 4),)},
            BlockedCollective(WORLD, "all_reduce", 4, (0, 2), (1,)),
            id="one has not entered it",
        ),
        pytest.param(
            {0: (waits("all_reduce", 4),), 1: (waits("broadcast", 4),), 2: (waits("all_reduce", 4),)},
            BlockedCollective(WORLD, "all_reduce", 4, (0, 2), (1,)),
            id="one has entered another one",
        ),
        pytest.param(
            {0: (waits("all_reduce", 4),), 1: (waits("all_reduce", 1, DATA), done("all_reduce", 3))},
            BlockedCollective(WORLD, "all_reduce", 4, (0,), (1,)),
            id="another group",
        ),
        pytest.param({0: (waits("all_reduce", 4, DATA),), 1: (done("all_reduce", 3),)}, None, id="no member"),
        pytest.param({0: (waits("all_reduce", 4),), 1: ()}, None, id="no answer"),
        # The GPU of rank 0 is at 4, and its script continues.
        pytest.param(
            {0: (waits("all_gather", 4, last=("reduce", 6)),), 1: (done("all_reduce", 3),)},
            BlockedCollective(WORLD, "all_gather", 4, (0,), (1,)),
            id="asynchronous",
        ),
        pytest.param(
            {
                0: (waits("all_reduce", 9, DATA),),
                1: (done("all_reduce", 8, DATA), waits("barrier", 2)),
                2: (waits("barrier", 2),),
                3: (waits("barrier", 2), done("all_reduce", 8, DATA)),
            },
            BlockedCollective(DATA, "all_reduce", 9, (0,), (1, 3)),
            id="all who are known have entered the barrier",
        ),
        pytest.param(
            {0: (GroupCollective(WORLD, "all_reduce", 4, None, 4),), 1: (done("all_reduce", 3),)}, None, id="forged"
        ),
    ],
)
def test_blocked_collectives(
    collectives: dict[int, tuple[GroupCollective, ...]], wanted: BlockedCollective | None
) -> None:
    assert find_blocked_collective(collectives) == wanted


@pytest.mark.parametrize("group", ["one", "{}-{}"])
def test_forged_collectives_take_no_time_that_grows_with_the_square_of_the_ranks(group: str) -> None:
    last = ("a", 10**9)
    forged = {
        rank: tuple(waits("a", 4 * rank + i, group.format(rank, i), last) for i in range(4)) for rank in range(8000)
    }
    began_at = time.process_time()
    assert find_blocked_collective(forged) is None
    # With the square, this takes minutes.
    assert time.process_time() - began_at < 5
