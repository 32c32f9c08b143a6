"""Times in the resource: RFC 3339 in UTC."""

from datetime import UTC, datetime


def format_seconds(at: float) -> str:
    """Format `at` (Unix seconds) as Kubernetes does: 2026-11-21T04:05:19Z."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_milliseconds(at: float) -> str:
    """Format `at` (Unix seconds) with milliseconds."""
    return datetime.fromtimestamp(round(at, 3), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_timestamp(text: str) -> float:
    """Parse a time in RFC 3339; return Unix seconds. Raises `ValueError` for other text."""
    return datetime.fromisoformat(text).timestamp()


def parse_or_past(text: str) -> float:
    """Parse a time of the status, which a user may have edited; return Unix seconds, and 0 for invalid text."""
    try:
        return parse_timestamp(text)
    except ValueError:
        return 0.0
