"""Times of a status, which a user may have edited."""

import pytest

from muster.api.spec.failure_policy import MAX_WINDOW_SECONDS
from muster.api.timestamps import format_timestamp, format_timestamp_milliseconds, parse_untrusted_timestamp

NOW = "2026-11-23T14:00:00.000Z"


@pytest.mark.parametrize(
    ("text", "at"),
    [
        (NOW, 1_795_442_400.0),
        ("", 0.0),
        ("yesterday", 0.0),
        ("0001-01-01T00:00:00", 0.0),
        ("0001-01-01T00:00:00+23:59", 0.0),
        ("1969-12-31T23:59:59Z", 0.0),
        ("9999-12-31T23:59:59Z", 0.0),
        ("9999-12-31T23:59:59.9999999-23:59", 0.0),
    ],
)
def test_a_time_that_no_clock_shows_counts_as_past(text: str, at: float) -> None:
    assert parse_untrusted_timestamp(text) == at


@pytest.mark.parametrize("text", [NOW, "9989-12-31T23:59:59.999999-23:59", "9990-01-01T00:00:00Z"])
def test_each_parsed_time_can_be_formatted_after_the_longest_timeout(text: str) -> None:
    at = parse_untrusted_timestamp(text) + MAX_WINDOW_SECONDS
    assert format_timestamp(at)[:4] == format_timestamp_milliseconds(at)[:4]
