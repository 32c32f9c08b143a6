"""Times in the resource: RFC 3339 in UTC."""

from datetime import UTC, datetime


def to_seconds(at: float) -> str:
    """Format `at` (Unix seconds) as Kubernetes does: whole seconds, 2026-11-21T04:05:19Z."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def to_millis(at: float) -> str:
    """Format `at` (Unix seconds) with milliseconds: the order of ranks' ends and speeds need them."""
    return datetime.fromtimestamp(round(at, 3), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_text(text: str) -> float:
    """Parse a time that this module formatted into Unix seconds. Raises `ValueError` for any other text."""
    return datetime.fromisoformat(text).timestamp()
