"""Compute the interval of agents' reports. Pure."""

from collections.abc import Iterable

MAX_REPORTS_PER_SECOND = 250.0
"""The rate of all agents' reports: a quarter of a slow core's capacity (bench/collector.py)."""

MIN_HEARTBEAT_SECONDS = 1.0
"""The interval for few agents, as in a local run."""

MAX_HEARTBEAT_SECONDS = 30.0
"""The interval for many agents. A node counts as silent after three intervals."""


def compute_heartbeat_seconds(agents: int, reports_per_second: float = MAX_REPORTS_PER_SECOND) -> float:
    """Return the interval of each agent's reports, if `agents` agents share this rate."""
    return min(MAX_HEARTBEAT_SECONDS, max(MIN_HEARTBEAT_SECONDS, agents / reports_per_second))


def compute_namespace_rate(agent_counts: Iterable[int]) -> float:
    """Return how many reports a second each namespace may send, if the namespaces have this many agents.

    What a namespace with fewer agents leaves of its share, the larger ones share (max-min fairness). So a namespace
    with thousands of agents does not lengthen the interval of the others.
    """
    larger, remaining = list(agent_counts), MAX_REPORTS_PER_SECOND
    while larger:
        rate = remaining / len(larger)
        smaller = [count for count in larger if count <= rate * MIN_HEARTBEAT_SECONDS]
        if not smaller:
            return rate
        remaining -= sum(smaller) / MIN_HEARTBEAT_SECONDS
        larger = [count for count in larger if count > rate * MIN_HEARTBEAT_SECONDS]
    return MAX_REPORTS_PER_SECOND
