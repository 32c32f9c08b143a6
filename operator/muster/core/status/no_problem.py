"""The reason and message of the condition Stalled while it is False. Pure."""

from muster.api.status.status import RESTARTING, STOPPING, SUSPENDED, SUSPENDING
from muster.api.timestamps import format_seconds
from muster.core.judge import Outcome, Verdict
from muster.core.status.problems import shared_problems
from muster.core.status.progress import ranks_with_steps
from muster.core.status.views import NOT_REPORTED, RUNNING, STARTING, UNKNOWN, StatusInput

NO_PROBLEM_KNOWN = "NoProblemKnown"
"""Ranks run, and neither agents nor the cluster report a problem."""

WAITING = "Waiting"
"""The job waits for something that needs no user: resources, a node, files or a report."""

NO_RECENT_STEP = "NoRecentStep"
"""A rank that counts steps has completed none for a while: it may evaluate, write a checkpoint, or hang."""

STEP_SECONDS = 300.0
"""A longer step is worth reporting."""


def why_not_stalled(status_input: StatusInput) -> tuple[str, str]:
    """The reason and the message of the condition Stalled while it is False."""
    if status_input.outcome.is_decided:
        return _describe_end(status_input.outcome)
    missing = _describe_wait(status_input)
    if missing:
        return WAITING, missing
    stepped_at = _least_recent_step(status_input)
    if stepped_at is not None and status_input.now >= stepped_at + STEP_SECONDS:
        return NO_RECENT_STEP, f"At least one rank has completed no step since {format_seconds(stepped_at)}"
    return NO_PROBLEM_KNOWN, "No problem is known"


def _describe_end(outcome: Outcome) -> tuple[str, str]:
    if outcome.verdict is Verdict.SUSPENDED:
        return (SUSPENDED, "The job is suspended") if outcome.settled else (SUSPENDING, "The job is being suspended")
    if outcome.verdict is Verdict.RESTARTING:
        return RESTARTING, "muster restarts the ranks"
    if outcome.verdict is Verdict.SUCCEEDED and outcome.settled:
        return "Complete", "The job succeeded"
    return STOPPING, "muster is stopping the rest of the job"


def _describe_wait(status_input: StatusInput) -> str:
    """Describe what the job waits for; "" for nothing."""
    nodes = status_input.facts.nodes
    shared = shared_problems(nodes, len(nodes))
    if status_input.facts.problem is not None:
        return status_input.facts.problem.message
    if shared:
        return "; ".join(entry.sentence for entry in shared)
    if not status_input.outcome.started:
        placed, ready = sum(node.is_placed for node in nodes), sum(node.is_ready for node in nodes)
        return f"Scheduled nodes: {placed} of {len(nodes)}; ready: {ready} of {len(nodes)}"
    unknown = any(view.state == UNKNOWN and view.reason != NOT_REPORTED for view in status_input.views)
    if unknown or any(view.state == STARTING for view in status_input.views):
        running = sum(view.state == RUNNING for view in status_input.views)
        return f"Ranks known to run: {running} of {len(status_input.views)}"
    return ""


def _least_recent_step(status_input: StatusInput) -> float | None:
    """The oldest of the ranks' latest step times."""
    # Without a collector the step comes from a log, which contains it only occasionally.
    if not status_input.job.spec.traits.has_collector:
        return None
    counted = (view.facts for view in ranks_with_steps(status_input.views) if view.state == RUNNING)
    return min((facts.stepped_at for facts in counted if facts and facts.stepped_at is not None), default=None)
