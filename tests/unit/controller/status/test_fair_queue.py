"""Waiting writes are sent fairly, and no namespace uses all of the queue."""

from muster.controller.status.fair_queue import FairQueue


async def test_namespaces_take_turns_and_ranks_hold_within_one() -> None:
    outbox = FairQueue[str](100)
    for number in range(5):
        outbox.put("evil", 0, f"evil {number}")
    outbox.put("victim", 1, "late")
    outbox.put("victim", 0, "new")
    assert [await outbox.get() for _ in range(7)] == ["evil 0", "new", "evil 1", "late", "evil 2", "evil 3", "evil 4"]


async def test_a_namespace_that_fills_it_leaves_the_others_their_part() -> None:
    outbox = FairQueue[int](100)
    assert sum(outbox.put("evil", 0, number) for number in range(1000)) == 100
    assert sum(outbox.put("victim", 0, number) for number in range(1000)) == 50
    assert not outbox.put("evil", 0, 0)
