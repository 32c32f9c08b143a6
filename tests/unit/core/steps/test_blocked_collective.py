"""The collective in which some ranks wait while others have not entered it."""

import time

import pytest

from muster.core.steps.blocked_collective import BlockedCollective, find_blocked_collective
from muster_worker.contract.collectives import GroupCollective

WORLD_GROUP = "0 (default_pg)"
DATA_GROUP = "1 (mesh_dp)"


def waiting_in(
    operation: str, sequence: int, group: str = WORLD_GROUP, last: tuple[str, int] | None = None
) -> GroupCollective:
    last_collective = last or (operation, sequence)
    return GroupCollective(group, *last_collective, operation, sequence)


def completed(operation: str, sequence: int, group: str = WORLD_GROUP) -> GroupCollective:
    return GroupCollective(group, operation, sequence)


@pytest.mark.parametrize(
    ("collectives", "expected"),
    [
        pytest.param({}, None, id="nothing recorded"),
        pytest.param({0: (completed("all_reduce", 4),), 1: (completed("all_reduce", 4),)}, None, id="no rank waits"),
        pytest.param(
            {0: (waiting_in("all_reduce", 4),), 1: (waiting_in("all_reduce", 4),)}, None, id="all have entered it"
        ),
        pytest.param(
            {0: (waiting_in("all_reduce", 4),), 1: (completed("all_reduce", 3),), 2: (waiting_in("all_reduce", 4),)},
            BlockedCollective(WORLD_GROUP, "all_reduce", 4, (0, 2), (1,)),
            id="one has not entered it",
        ),
        pytest.param(
            {0: (waiting_in("all_reduce", 4),), 1: (waiting_in("broadcast", 4),), 2: (waiting_in("all_reduce", 4),)},
            BlockedCollective(WORLD_GROUP, "all_reduce", 4, (0, 2), (1,)),
            id="one has entered another one",
        ),
        pytest.param(
            {
                0: (waiting_in("all_reduce", 4),),
                1: (waiting_in("all_reduce", 1, DATA_GROUP), completed("all_reduce", 3)),
            },
            BlockedCollective(WORLD_GROUP, "all_reduce", 4, (0,), (1,)),
            id="another group",
        ),
        pytest.param(
            {0: (waiting_in("all_reduce", 4, DATA_GROUP),), 1: (completed("all_reduce", 3),)},
            None,
            id="rank 1 is not a member",
        ),
        pytest.param({0: (waiting_in("all_reduce", 4),), 1: ()}, None, id="no answer"),
        # The GPU of rank 0 is at collective 4, and its script is at 6.
        pytest.param(
            {0: (waiting_in("all_gather", 4, last=("reduce", 6)),), 1: (completed("all_reduce", 3),)},
            BlockedCollective(WORLD_GROUP, "all_gather", 4, (0,), (1,)),
            id="asynchronous",
        ),
        pytest.param(
            {
                0: (waiting_in("all_reduce", 9, DATA_GROUP),),
                1: (completed("all_reduce", 8, DATA_GROUP), waiting_in("barrier", 2)),
                2: (waiting_in("barrier", 2),),
                3: (waiting_in("barrier", 2), completed("all_reduce", 8, DATA_GROUP)),
            },
            BlockedCollective(DATA_GROUP, "all_reduce", 9, (0,), (1, 3)),
            id="all known members have entered the barrier",
        ),
        pytest.param(
            {0: (GroupCollective(WORLD_GROUP, "all_reduce", 4, None, 4),), 1: (completed("all_reduce", 3),)},
            None,
            id="forged",
        ),
    ],
)
def test_find_blocked_collective(
    collectives: dict[int, tuple[GroupCollective, ...]], expected: BlockedCollective | None
) -> None:
    assert find_blocked_collective(collectives) == expected


@pytest.mark.parametrize("group", ["one", "{}-{}"])
def test_the_time_for_forged_collectives_is_linear_in_the_ranks(group: str) -> None:
    last = ("a", 10**9)
    forged = {
        rank: tuple(waiting_in("a", 4 * rank + i, group.format(rank, i), last) for i in range(4))
        for rank in range(8000)
    }
    started_at = time.process_time()
    assert find_blocked_collective(forged) is None
    # An algorithm with quadratic time takes minutes.
    assert time.process_time() - started_at < 5
