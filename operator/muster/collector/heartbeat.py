"""Compute the interval of agents' reports. Pure."""

MAX_REPORTS_PER_SECOND = 250.0
"""The rate of all agents: a quarter of one slow core's capacity (bench/collector.py). The rest is for events."""

MIN_HEARTBEAT_SECONDS = 1.0
"""The interval for few agents, as in a local run: the board's steps are at most this old."""

MAX_HEARTBEAT_SECONDS = 30.0
"""A node counts as silent after three intervals; 90 s is short enough."""


def heartbeat_seconds(agents: int) -> float:
    """Return the seconds between one agent's reports if `agents` agents share the collector."""
    return min(MAX_HEARTBEAT_SECONDS, max(MIN_HEARTBEAT_SECONDS, agents / MAX_REPORTS_PER_SECOND))
