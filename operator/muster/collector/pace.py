"""How often agents report when nothing happens. Pure."""

MAX_REPORTS_PER_SECOND = 250.0
"""All agents together: a quarter of what one slow core takes (bench/collector.py); the rest is for events."""

MIN_HEARTBEAT_SECONDS = 1.0
"""Few agents, as in a local run: steps on the board are at most this old."""

MAX_HEARTBEAT_SECONDS = 30.0
"""A node counts as silent after three of these: a minute and a half is as long as anybody should wait for that."""


def heartbeat_seconds(agents: int) -> float:
    """Seconds between the reports of one agent when `agents` of them share the collector."""
    return min(MAX_HEARTBEAT_SECONDS, max(MIN_HEARTBEAT_SECONDS, agents / MAX_REPORTS_PER_SECOND))
