"""Times in the resource: RFC 3339 in UTC."""

from datetime import UTC, datetime

_MAX_TIME = datetime(9990, 1, 1, tzinfo=UTC).timestamp()
"""`datetime` ends with the year 9999. A time before this maximum plus the longest timeout is still valid."""


def format_timestamp(at: float) -> str:
    """Format `at` (Unix seconds) as Kubernetes does: 2026-11-21T04:05:19Z."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_timestamp_milliseconds(at: float) -> str:
    """Format `at` (Unix seconds) with milliseconds."""
    return datetime.fromtimestamp(round(at, 3), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_timestamp(text: str) -> float:
    """Parse a time in RFC 3339; return Unix seconds. Raises `ValueError` for other text."""
    return datetime.fromisoformat(text).timestamp()


def parse_untrusted_timestamp(text: str) -> float:
    """Parse a time of the status, which a user may have edited; return Unix seconds.

    Return 0 for invalid text, for a time before 1970, and for a time after `_MAX_TIME`, which could not be formatted
    after a timeout is added.
    """
    try:
        at = parse_timestamp(text)
    except (ValueError, OverflowError):
        return 0.0
    return at if 0.0 <= at <= _MAX_TIME else 0.0
