"""Which start of its gang a job is at. Starts are counted in the status, before any agent hears of them."""

from muster.api.status import Status
from muster.plan.facts import JobFacts
from muster.plan.nodes import current_agent


def current_incarnation(previous: Status) -> int:
    """The number of the start that `previous` tells of or, when the gang is to be started (again), the next one."""
    return max(previous.incarnation, 1) if previous.start_time is not None else previous.incarnation + 1


def incarnation_of(previous: Status, facts: JobFacts) -> int:
    """The same, also for a status that somebody emptied: agents know which start they belong to."""
    agents = tuple(current_agent(node) for node in facts.nodes)
    seen = max((agent.report.incarnation for agent in agents if agent is not None), default=0)
    return max(current_incarnation(previous), seen)
