"""The stored data of streams, logs and namespaces stays within its limits."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.clients.kubernetes.lines import LineSplitter
from muster.clients.kubernetes.skipped import MAX_LINES, WINDOW_SECONDS, SkippedLog
from muster.collector.memory_limits import MemoryLimits, ObjectSize


@given(st.lists(st.binary(max_size=12), max_size=8), st.integers(1, 7))
def test_lines_are_the_same_however_they_come(lines: list[bytes], size: int) -> None:
    lines = [line.replace(b"\n", b"") for line in lines]
    text = b"".join(line + b"\n" for line in lines) + b"rest"
    cutter = LineSplitter()
    result = [line for at in range(0, len(text), size) for line in cutter.feed(text[at : at + size])]
    assert result == [line for line in lines if line]


def test_a_line_that_is_too_long_is_dropped_and_the_next_one_read() -> None:
    cutter = LineSplitter(max_bytes=10)
    chunks = [b"12345", b"678", b"9012345", b"x\nshort\n", b"12345678901\n", b"1234567890\n"]
    assert [line for chunk in chunks for line in cutter.feed(chunk)] == [b"short", b"1234567890"]
    assert cutter.dropped == 2


def test_an_object_is_logged_once_and_a_flood_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    log = SkippedLog(lambda: now)
    with caplog.at_level(logging.WARNING):
        for size in range(3):
            log.log("Pod ns/a", "u", f"it is bad{size or ''}")
        assert caplog.messages == ["muster skips Pod ns/a: it is bad"]
        for number in range(500):
            log.log(f"Pod ns/{number}", str(number), "it is bad")
        assert len(caplog.messages) == MAX_LINES
        now = WINDOW_SECONDS
        log.log("Pod ns/b", "v", "it is bad")
        assert caplog.messages[MAX_LINES:] == [
            f"muster skipped {501 - MAX_LINES} more objects that it can't parse",
            "muster skips Pod ns/b: it is bad",
        ]


def shares() -> MemoryLimits:
    return MemoryLimits(per_namespace=100, total=150, guaranteed=10)


def test_a_namespace_that_is_full_leaves_the_others_their_share() -> None:
    here = shares()
    assert here.reserve("a", ObjectSize("evil", 90))
    assert not here.reserve("b", ObjectSize("evil", 11))
    assert here.reserve("c", ObjectSize("victim", 60))
    # All of it is used, and each still has its minimum.
    assert not here.reserve("d", ObjectSize("third", 11))
    assert here.reserve("d", ObjectSize("third", 10))
    here.release("a")
    assert here.reserve("b", ObjectSize("evil", 11))


def test_an_object_that_grows_and_does_not_fit_any_more_takes_nothing() -> None:
    here = shares()
    assert here.reserve("a", ObjectSize("evil", 50))
    assert not here.reserve("a", ObjectSize("evil", 101))
    assert (here.get_used("evil"), here.get_keys()) == (0, ())
    assert here.reserve("a", ObjectSize("evil", 101), limit_factor=2)


Takes = st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("xyz"), st.integers(0, 120), st.booleans()))


@given(Takes)
def test_what_is_taken_is_what_is_counted(takes: list[tuple[str, str, int, bool]]) -> None:
    here, held = shares(), dict[str, ObjectSize]()
    for key, namespace, weight, is_end in takes:
        held.pop(key, None)
        if is_end:
            here.release(key)
        elif here.reserve(key, ObjectSize(namespace, weight)):
            held[key] = ObjectSize(namespace, weight)
        used = {name: sum(one.byte_count for one in held.values() if one.namespace == name) for name in "xyz"}
        assert {name: here.get_used(name) for name in "xyz"} == used
        assert set(here.get_keys()) == set(held)
        assert all(amount <= 100 for amount in used.values())
        assert sum(used.values()) <= 150 + 3 * 10
