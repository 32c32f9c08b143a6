"""Refusals are counted, and logged briefly."""

from muster.collector.server.refusal import RefusalReason
from muster.collector.server.refusal_counter import MAX_SOURCES, OTHERS, RefusalCounter


def test_a_line_has_the_reasons_and_who_was_refused_most() -> None:
    refusals = RefusalCounter()
    for _ in range(3):
        refusals.count(RefusalReason.TOO_BUSY, "vit-0-0", "team")
    refusals.count(RefusalReason.BAD_TOKEN, "10.0.0.7")

    assert refusals.take_summary() == "TooBusy 3, BadToken 1; most from team/vit-0-0 3, 10.0.0.7 1"


def test_nothing_new_is_not_reported() -> None:
    refusals = RefusalCounter()
    assert refusals.take_summary() is None
    refusals.count(RefusalReason.BAD_TOKEN, "10.0.0.7")
    refusals.take_summary()

    assert refusals.take_summary() is None
    assert refusals.counts == {RefusalReason.BAD_TOKEN: 1}


def test_any_number_of_sources_takes_little() -> None:
    refusals = RefusalCounter()
    for number in range(5 * MAX_SOURCES):
        refusals.count(RefusalReason.NO_TOKEN, f"fd00::{number:x}")

    assert len(refusals._sources) == MAX_SOURCES + 1
    assert (
        refusals.take_summary()
        == f"NoToken {5 * MAX_SOURCES}; most from {OTHERS} {4 * MAX_SOURCES}, fd00::0 1, fd00::1 1"
    )
