"""Why a job is not stalled, and what it waits for, as far as muster knows. Pure."""

from muster.api.status.status import STOPPING, SUSPENDED, SUSPENDING
from muster.api.timestamps import to_seconds
from muster.core.judge import Outcome, Verdict
from muster.core.status.problems import shared_problems
from muster.core.status.progress import counting
from muster.core.status.views import NOT_REPORTED, RUNNING, STARTING, UNKNOWN, Picture

NO_PROBLEM_KNOWN = "NoProblemKnown"
"""Ranks run, and neither agents nor the cluster report a problem."""

WAITING = "Waiting"
"""The job waits for something that should come by itself: resources, a node, files, a report."""

NO_RECENT_STEP = "NoRecentStep"
"""A rank that counts steps has not completed one for a while: it may evaluate, write a checkpoint, or hang."""

STEP_SECONDS = 300.0
"""A step that takes longer is worth mentioning."""


def why_not_stalled(picture: Picture) -> tuple[str, str]:
    """The reason and the message of the condition Stalled while it is False."""
    if picture.outcome.is_decided:
        return _ending(picture.outcome)
    missing = _missing(picture)
    if missing:
        return WAITING, missing
    stepped_at = _least_recent_step(picture)
    if stepped_at is not None and picture.now >= stepped_at + STEP_SECONDS:
        return NO_RECENT_STEP, f"At least one rank has completed no step since {to_seconds(stepped_at)}"
    return NO_PROBLEM_KNOWN, "No problem is known"


def _ending(outcome: Outcome) -> tuple[str, str]:
    if outcome.verdict is Verdict.SUSPENDED:
        return (SUSPENDED, "The job is suspended") if outcome.settled else (SUSPENDING, "The job is being suspended")
    if outcome.verdict is Verdict.SUCCEEDED and outcome.settled:
        return "Complete", "The job succeeded"
    return STOPPING, "muster is stopping the rest of the job"


def _missing(picture: Picture) -> str:
    """What the job waits for; "" for nothing."""
    nodes = picture.facts.nodes
    shared = shared_problems(nodes, len(nodes))
    if picture.facts.problem is not None:
        return picture.facts.problem.message
    if shared:
        return "; ".join(entry.sentence for entry in shared)
    if not picture.outcome.started:
        placed, ready = sum(node.is_placed for node in nodes), sum(node.is_ready for node in nodes)
        return f"Scheduled nodes: {placed} of {len(nodes)}; ready: {ready} of {len(nodes)}"
    unknown = any(view.state == UNKNOWN and view.reason != NOT_REPORTED for view in picture.views)
    if unknown or any(view.state == STARTING for view in picture.views):
        running = sum(view.state == RUNNING for view in picture.views)
        return f"Ranks known to run: {running} of {len(picture.views)}"
    return ""


def _least_recent_step(picture: Picture) -> float | None:
    """The time of the last step, for the rank whose last step is the oldest."""
    # Without a collector muster reads steps from a log, which shows them only now and then.
    if not picture.job.spec.traits.has_collector:
        return None
    counted = (view.facts for view in counting(picture.views) if view.state == RUNNING)
    return min((facts.stepped_at for facts in counted if facts and facts.stepped_at is not None), default=None)
