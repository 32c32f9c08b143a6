"""The members of an attempt: the nodes that run its ranks, in the order of their node ranks.

A node has one pod at a time: node 2 of the job digits has the pods digits-2-0, digits-2-1, ... Its node rank is its
position among the members. Most jobs have the same members in every attempt, so that both numbers are equal.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.facts import JobFacts, NodeFacts
from muster.core.membership.elastic import ResizeInput, choose_elastic_members
from muster.core.membership.member_text import parse_members
from muster.core.membership.spares import replace_unusable_members
from muster.core.world import count_nodes_and_spares


def has_fixed_members(job: Job) -> bool:
    """Whether all attempts have the same members, the nodes 0 to spec.nodes - 1."""
    return job.spec.elastic is None and job.spec.spares == 0


def read_members(job: Job, previous: Status) -> tuple[int, ...] | None:
    """Return the members that the status records; None if no attempt runs, or if the members never change."""
    if has_fixed_members(job) or not previous.was_started or previous.members is None:
        return None
    return _parse_recorded_members(job, previous.members)


def choose_next_members(job: Job, previous: Status, facts: JobFacts, now: float) -> tuple[int, ...]:
    """Return the members of the next attempt; `facts.nodes` are all nodes of the job, by number."""
    last = None if previous.members is None else _parse_recorded_members(job, previous.members)
    if job.spec.elastic is not None:
        resize_input = ResizeInput(job.spec.elastic, job.spec.nodes, facts, now)
        return choose_elastic_members(previous, last, resize_input)
    members = tuple(range(job.spec.nodes)) if last is None else last
    return replace_unusable_members(previous, members, facts.nodes) if job.spec.spares else members


def split_members(facts: JobFacts, members: Sequence[int], desired_nodes: int) -> JobFacts:
    """Return the facts with the members in `nodes` and the other nodes in `non_members`.

    `desired_nodes` is `spec.nodes`.
    """
    ranks = {node: rank for rank, node in enumerate(members)}
    return replace(
        facts,
        nodes=tuple(replace(facts.nodes[node], attempt_rank=rank) for node, rank in ranks.items()),
        non_members=tuple(node for node in facts.nodes if node.node not in ranks),
        desired_nodes=desired_nodes,
    )


def find_node(facts: JobFacts, number: int) -> NodeFacts:
    """Return the node with this number, which may differ from its node rank."""
    return next(node for node in facts.all_nodes if node.node == number)


def set_node_count(job: Job, facts: JobFacts) -> Job:
    """Return the job with the attempt's number of members as spec.nodes."""
    count = len(facts.nodes)
    return job if count == job.spec.nodes else _replace_node_count(job, count)


def format_members(nodes: Iterable[NodeFacts]) -> str:
    """Write the nodes in their order, as ranges: `0-1,4,3`."""
    ranges: list[tuple[int, int]] = []
    for node in nodes:
        if ranges and ranges[-1][1] == node.node - 1:
            ranges[-1] = (ranges[-1][0], node.node)
        else:
            ranges.append((node.node, node.node))
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in ranges)


def _parse_recorded_members(job: Job, text: str) -> tuple[int, ...] | None:
    """Parse the members in the status; None if the job can't have them, because a user may have edited the status."""
    members, elastic = parse_members(text, count_nodes_and_spares(job)), job.spec.elastic
    if members is None:
        return None
    allowed = range(job.spec.nodes, job.spec.nodes + 1)
    if elastic is not None:
        allowed = range(elastic.min_nodes, elastic.max_nodes + 1)
    return members if len(members) in allowed else None


def _replace_node_count(job: Job, count: int) -> Job:
    return job.model_copy(update={"spec": job.spec.model_copy(update={"nodes": count})})
