"""Stragglers in the status: the record `status.stragglers`, and a sentence about them."""

from collections.abc import Mapping

from muster.api.plurals import capitalize
from muster.api.status.restarts import MAX_NODE_NAME_CHARS
from muster.api.status.stragglers import MAX_SLOW_NODES, MAX_SLOW_RANKS, SlowNode, SlowRank, StragglerRecord
from muster.api.timestamps import format_timestamp_milliseconds
from muster.core.facts import NodeFacts
from muster.core.failure.ends import STRAGGLER
from muster.core.outcome import Outcome
from muster.core.status.failure_sentence import MAX_RANGE_CHARS
from muster.core.status.rank_ranges import format_ranges
from muster.core.status.truncate import truncate_message
from muster.core.status.views import StatusInput
from muster.core.steps.stragglers import Straggler, Stragglers, describe_busy_time


def build_straggler_record(status_input: StatusInput) -> StragglerRecord | None:
    """Return the record of the stragglers. If they fail the attempt, keep their record until the next attempt."""
    outcome, before = status_input.outcome, status_input.previous.stragglers
    failure = outcome.failure if outcome.failure is not None and outcome.failure.reason == STRAGGLER else None
    if outcome.is_restart_due or (outcome.is_decided and failure is None):
        return None
    if failure is not None and before is not None and before.attempt == outcome.attempt:
        return before if before.is_failure else _record_failure(before, outcome.stragglers, failure.first.rank)
    stragglers = outcome.stragglers
    if stragglers is None:
        return None
    pool = status_input.job.spec.node_pool
    return StragglerRecord(
        attempt=outcome.attempt,
        count=len(stragglers.ranks),
        ranks=format_ranges(sorted(rank.rank for rank in stragglers.ranks)),
        median_seconds=_round_seconds(stragglers.median),
        slowest=tuple(_build_slow_rank(rank) for rank in stragglers.ranks[:MAX_SLOW_RANKS]),
        nodes=tuple(
            SlowNode(node=node.node, node_name=_get_kube_node_name(node)) for node in stragglers.nodes[:MAX_SLOW_NODES]
        ),
        instance_type=None if pool is None else pool.instance_type,
        message=truncate_message(capitalize(describe_stragglers(stragglers))),
        since=format_timestamp_milliseconds(stragglers.since),
    )


def _record_failure(before: StragglerRecord, stragglers: Stragglers | None, failed: int | None) -> StragglerRecord:
    """Record that muster stops the ranks because of rank `failed`, and make this rank the first in the list."""
    ranks = () if stragglers is None else stragglers.ranks
    first = tuple(_build_slow_rank(rank) for rank in ranks if rank.rank == failed)
    others = tuple(entry for entry in before.slowest if entry.rank != failed)
    slowest = (*first, *others)[:MAX_SLOW_RANKS]
    return before.model_copy(update={"is_failure": True, "slowest": slowest})


def describe_stragglers(stragglers: Stragglers) -> str:
    """Describe the stragglers: "rank 3 on vit-1 is slower than the others: it is busy for ..."."""
    first = stragglers.ranks[0]
    busy = describe_busy_time(_round_seconds(first.busy_seconds), _round_seconds(stragglers.median))
    if len(stragglers.ranks) == 1:
        return f"rank {first.rank} on {_describe_node(first.node)} is slower than the others: {busy}"
    ranks = format_ranges(sorted(rank.rank for rank in stragglers.ranks), MAX_RANGE_CHARS)
    if len(stragglers.nodes) == 1 and all(rank.node.node == stragglers.nodes[0].node for rank in stragglers.ranks):
        node = _describe_node(first.node)
        return f"all ranks on {node} ({ranks}) are slower than the others: rank {first.rank} most, {busy}"
    return f"ranks {ranks} are slower than the others: rank {first.rank} on {_describe_node(first.node)} most, {busy}"


def describe_slow_ranks(outcome: Outcome) -> Mapping[int, str]:
    """Return a description of each of the slowest stragglers, by rank; empty while muster stops the ranks."""
    stragglers = outcome.stragglers
    if stragglers is None or outcome.is_decided:
        return {}
    return {
        rank.rank: describe_busy_time(rank.busy_seconds, stragglers.median)
        for rank in stragglers.ranks[:MAX_SLOW_RANKS]
    }


def _build_slow_rank(rank: Straggler) -> SlowRank:
    return SlowRank(rank=rank.rank, node=rank.node.node, busy_seconds=_round_seconds(rank.busy_seconds))


def _round_seconds(seconds: float) -> float:
    return round(seconds, 6)


def _describe_node(node: NodeFacts) -> str:
    name = _get_kube_node_name(node)
    return node.name if name is None else f"{node.name} ({name})"


def _get_kube_node_name(node: NodeFacts) -> str | None:
    return None if node.process.kube_node is None else node.process.kube_node[:MAX_NODE_NAME_CHARS]
