"""Detect changes of rank states. The status shows them at once, even if the job has used up its processor time."""

from collections.abc import Iterable

from muster.core.facts import AgentFacts

RankStatesHash = int
"""A hash of the states of all agents and ranks."""


def hash_rank_states(agents: Iterable[AgentFacts | None]) -> RankStatesHash:
    """Hash the newest reported states, without steps, times and log lines."""
    return hash(
        tuple(
            None if agent is None else (agent.report.phase, tuple(rank.report.state for rank in agent.ranks))
            for agent in agents
        )
    )
