"""The interval of agents' reports. Pure."""

MAX_REPORTS_PER_SECOND = 250.0
"""The rate of all agents: a quarter of one slow core's capacity (bench/collector.py); the rest is for events."""

MIN_HEARTBEAT_SECONDS = 1.0
"""The interval for few agents, as in a local run: the board's steps are at most this old."""

MAX_HEARTBEAT_SECONDS = 30.0
"""A node counts as silent after three intervals: a minute and a half is long enough."""


def heartbeat_seconds(agents: int) -> float:
    """Seconds between the reports of one agent if `agents` of them share the collector."""
    return min(MAX_HEARTBEAT_SECONDS, max(MIN_HEARTBEAT_SECONDS, agents / MAX_REPORTS_PER_SECOND))
