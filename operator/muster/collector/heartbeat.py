"""Compute the interval of agents' reports. Pure."""

MAX_REPORTS_PER_SECOND = 250.0
"""The rate of all agents' reports: a quarter of a slow core's capacity (bench/collector.py)."""

MIN_HEARTBEAT_SECONDS = 1.0
"""The interval for few agents, as in a local run."""

MAX_HEARTBEAT_SECONDS = 30.0
"""The interval for many agents. A node counts as silent after three intervals."""


def compute_heartbeat_seconds(agents: int) -> float:
    """Return the interval of each agent's reports, if `agents` agents share the collector."""
    return min(MAX_HEARTBEAT_SECONDS, max(MIN_HEARTBEAT_SECONDS, agents / MAX_REPORTS_PER_SECOND))
