"""Which start of its gang a job is at. Starts are counted in the status, before any agent hears of them."""

from muster.api.status import Status
from muster.plan.facts import JobFacts
from muster.plan.suspension import is_resumed, is_suspended

REFUSED = "Refused"
"""The phase of a job that was not started, and will not be before its spec is corrected."""

_BEFORE_THE_START = ("Pending", "Queued", "Starting", REFUSED)


def was_started(previous: Status) -> bool:
    """Whether `previous` tells that the gang was told to start, and was not suspended since.

    Starts are counted: who lost the time of the last one did not undo it. Only a suspension does.
    """
    if previous.start_time is not None:
        return True
    if previous.attempt == 0 or is_suspended(previous):
        return False
    return not is_resumed(previous) or previous.phase not in _BEFORE_THE_START


def current_attempt(previous: Status) -> int:
    """The number of the start that `previous` tells of or, when the gang is to be started (again), the next one."""
    return max(previous.attempt, 1) if was_started(previous) else previous.attempt + 1


def newest_attempt(previous: Status, facts: JobFacts) -> int:
    """The same, also for a status that somebody emptied: agents know which start they belong to."""
    agents = tuple(node.current_agent for node in facts.nodes)
    newest = max((agent.report.attempt for agent in agents if agent is not None), default=0)
    return max(current_attempt(previous), newest)
