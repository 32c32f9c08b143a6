"""Times as the resource writes them: RFC 3339 in UTC."""

from datetime import UTC, datetime


def to_seconds(at: float) -> str:
    """`at` (Unix seconds) as Kubernetes writes times: whole seconds, 2026-11-21T04:05:19Z."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def to_millis(at: float) -> str:
    """`at` (Unix seconds) with milliseconds: what orders the ends of ranks, and measures a pace."""
    return datetime.fromtimestamp(round(at, 3), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_text(text: str) -> float:
    """Unix seconds of a time that this module wrote. Raises `ValueError` for any other text."""
    return datetime.fromisoformat(text).timestamp()
