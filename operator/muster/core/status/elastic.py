"""The status of an elastic job's size."""

from muster.api.names import JOB_UID_LABEL
from muster.api.status.elastic import ElasticStatus
from muster.api.timestamps import format_timestamp
from muster.core.facts import NodeFacts
from muster.core.membership.elastic import compute_followed_nodes, find_growth_time
from muster.core.status.problems import group_problems, join_node_names
from muster.core.status.truncate import truncate_message
from muster.core.status.views import StatusInput


def build_elastic_status(status_input: StatusInput) -> ElasticStatus | None:
    """Return the size of an elastic job; None for other jobs."""
    job, facts = status_input.job, status_input.facts
    if job.spec.elastic is None or facts.desired_nodes is None:
        return None
    return ElasticStatus(
        followed_nodes=compute_followed_nodes(
            status_input.previous, facts, facts.desired_nodes, starts_ranks=status_input.starts_ranks
        ),
        selector=f"{JOB_UID_LABEL}={job.metadata.uid}",
        message=describe_missing_nodes(status_input),
    )


def describe_missing_nodes(status_input: StatusInput) -> str:
    """Describe that an elastic job runs with fewer nodes than its spec has, and why; "" otherwise."""
    facts, elastic = status_input.facts, status_input.job.spec.elastic
    desired, count = facts.desired_nodes, len(facts.nodes)
    if elastic is None or desired is None or count >= desired or status_input.outcome.is_decided:
        return ""
    share = f"runs with {count} of {desired} nodes"
    ready = [node.name for node in facts.non_members if node.is_ready]
    if len(ready) < desired - count:
        return truncate_message("; ".join((share, *_describe_waiting(facts.non_members))))
    at = find_growth_time(elastic, status_input.previous, desired)
    when = f" after {format_timestamp(at)}" if at > status_input.now else ""
    return f"{share}; {join_node_names(ready)} {'joins' if len(ready) == 1 else 'join'} them{when}"


def _describe_waiting(nodes: tuple[NodeFacts, ...]) -> list[str]:
    """Describe why nodes with a pod can't join yet."""
    parts = [entry.sentence for entry in group_problems(nodes, node_count=1)]
    names = [
        node.name for node in nodes if not node.has_no_agent and not node.is_ready and node.process.problem is None
    ]
    return [*parts, f"{join_node_names(names)} {'is' if len(names) == 1 else 'are'} starting"] if names else parts
