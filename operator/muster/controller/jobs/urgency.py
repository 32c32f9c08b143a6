"""What of a job's agents is told at once, however much there is to compute: that a rank's state has changed."""

from collections.abc import Iterable

from muster.core.facts import AgentFacts

Standing = int
"""A number for how the ranks stand: another one when a rank's or an agent's state is another one."""


def standing(agents: Iterable[AgentFacts | None]) -> Standing:
    """How the ranks stand by their agents' newest word. Cheap: it doesn't look at steps, times or lines."""
    return hash(
        tuple(
            None if agent is None else (agent.report.phase, tuple(rank.report.state for rank in agent.ranks))
            for agent in agents
        )
    )
