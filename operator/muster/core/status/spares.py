"""The status of a job's spares."""

from muster.api.status.spares import SpareStatus
from muster.core.facts import NodeFacts
from muster.core.failure import rank_output
from muster.core.membership.spares import is_spare_ready
from muster.core.status.problems import group_problems, join_node_names
from muster.core.status.truncate import truncate_message
from muster.core.status.views import StatusInput


def build_spare_status(status_input: StatusInput) -> SpareStatus | None:
    """Return how many spares are ready, and why the others are not; None for a job without spares."""
    desired = status_input.job.spec.spares
    if desired == 0:
        return None
    # muster stops the spares when it stops the ranks.
    if status_input.outcome.ends_job:
        return SpareStatus(desired=desired, ready=0)
    spares = status_input.facts.non_members
    waiting = [node for node in spares if not is_spare_ready(node)]
    return SpareStatus(desired=desired, ready=len(spares) - len(waiting), message=_describe_waiting(waiting))


def _describe_waiting(spares: list[NodeFacts]) -> str:
    parts = [entry.sentence for entry in group_problems(spares, node_count=1)]
    names = []
    for node in spares:
        agent = node.current_agent
        if agent is not None and agent.report.problem is not None:
            parts.append(f"{node.name}: {rank_output.sanitize_line(agent.report.problem.message)}")
        elif node.process.problem is None:
            names.append(node.name)
    if names:
        parts.append(f"{join_node_names(names)} {'is' if len(names) == 1 else 'are'} starting")
    return truncate_message("; ".join(parts)) if parts else ""
