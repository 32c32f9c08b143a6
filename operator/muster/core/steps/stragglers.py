"""Find stragglers: ranks that are busy for longer in each step than the others.

The others wait for them in collectives.

The busy time of a step is its time without the waits for other ranks. The agents report the median of each rank's last
steps, so one slow step does not make a rank a straggler.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median_low

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.api.status.stragglers import StragglerRecord
from muster.api.timestamps import parse_untrusted_timestamp
from muster.core.facts import JobFacts, NodeFacts, RankFacts
from muster.core.failure.ends import STRAGGLER, End, EndKind
from muster.core.failure.failure import Failure
from muster.core.restarts import NoRestart, find_restart, find_rule, read_last_restart
from muster.core.world import compute_world_size, find_node_of_rank
from muster_worker.contract.schema import AgentPhase, RankState

SLOW_FACTOR = 1.5
"""A rank whose busy time is at least this many times the median is a straggler."""

END_FACTOR = 1.25
"""A rank stays a straggler until its busy time is below this many times the median.

Otherwise a rank near the limit would change the list all the time.
"""

MIN_EXCESS_SECONDS = 0.01
"""A rank with a smaller difference from the median is not a straggler, because very short steps vary by chance."""

MAX_BUSY_SECONDS = 86400.0
"""muster ignores a longer busy time, because it must be forged."""

REPLACE_SECONDS = 60.0
"""A straggler fails the attempt after this time, if a rule of the failure policy has the reason Straggler."""


@dataclass(frozen=True)
class Straggler:
    """A slow rank, and its busy time per step in seconds."""

    rank: int
    node: NodeFacts
    busy_seconds: float


@dataclass(frozen=True)
class Stragglers:
    """The slow ranks, slowest first, and the nodes with only slow ranks.

    `median` is the median busy time of all ranks in seconds. `since` is when muster found the stragglers (Unix
    seconds).
    """

    ranks: tuple[Straggler, ...]
    nodes: tuple[NodeFacts, ...]
    median: float
    since: float


def find_stragglers(
    job: Job, facts: JobFacts, record: StragglerRecord | None, attempt: int, now: float
) -> Stragglers | None:
    """Return the stragglers of `attempt`; None if there are none. `record` is the one in the last status."""
    measured_ranks = tuple(_find_measured_ranks(facts, attempt, now))
    # A median of few ranks is not reliable, and some ranks have no measurement right after the start.
    if len(measured_ranks) < 2 or len(measured_ranks) * 2 < compute_world_size(job):  # noqa: PLR2004 - a rank and another one
        return None
    median = median_low(rank.busy_seconds for rank in measured_ranks)
    known_ranks = frozenset(_read_ranks(record)) if record is not None and record.attempt == attempt else frozenset()
    slow_ranks = [
        rank
        for rank in measured_ranks
        if _is_slow(rank, median, END_FACTOR if rank.rank in known_ranks else SLOW_FACTOR)
    ]
    if not slow_ranks:
        return None
    slow_ranks.sort(key=lambda rank: (-rank.busy_seconds, rank.rank))
    stragglers = Stragglers(tuple(slow_ranks), tuple(_find_slow_nodes(measured_ranks, slow_ranks)), median, now)
    return stragglers if record is None or record.attempt != attempt else _keep_recorded_values(stragglers, record)


def find_straggler_failure(
    job: Job, previous: Status, facts: JobFacts, stragglers: Stragglers | None, now: float
) -> Failure | None:
    """Return the failure of the attempt by the slowest rank that a rule of the failure policy matches.

    A failure in the status remains a failure, because a rank may become faster while muster stops it.
    """
    record = previous.stragglers
    if record is None or record.attempt != previous.current_attempt:
        return None
    since = parse_untrusted_timestamp(record.since)
    if record.is_failure and record.slowest:
        first = record.slowest[0]
        line = describe_busy_time(first.busy_seconds, record.median_seconds)
        return _make_failure(job, facts, first.rank, line, since)
    is_stopping = facts.stop_request is not None or job.spec.suspend or previous.is_failing
    if stragglers is None or is_stopping or now < since + REPLACE_SECONDS:
        return None
    failures = (
        _make_failure(job, facts, slow.rank, describe_busy_time(slow.busy_seconds, stragglers.median), since)
        for slow in stragglers.ranks
    )
    return next((failure for failure in failures if _ends_attempt(job, previous, failure)), None)


def _ends_attempt(job: Job, previous: Status, failure: Failure) -> bool:
    """Whether a rule of the policy applies, and its action may still help."""
    policy = job.spec.failure_policy
    rule = None if policy is None else find_rule(policy, failure.first)
    if rule is None or rule.action == "Ignore" or _was_replaced(previous, failure.first.node):
        return False
    # A slow job is better than a failed one, so the job must not end because its restarts are used up.
    restart = find_restart(job, previous, failure, read_last_restart(previous))
    return rule.action == "Fail" or not isinstance(restart, NoRestart)


def _find_measured_ranks(facts: JobFacts, attempt: int, now: float) -> Iterator[Straggler]:
    for node in facts.nodes:
        agent = node.current_agent
        if agent is None or node.is_idle or facts.is_silent(node, now):
            continue
        if agent.report.attempt == attempt and agent.report.phase == AgentPhase.RUNNING:
            yield from (measured for rank in agent.ranks if (measured := _read_measurement(node, rank)) is not None)


def _read_measurement(node: NodeFacts, rank: RankFacts) -> Straggler | None:
    seconds = rank.report.busy_seconds
    if seconds is None or rank.report.state != RankState.RUNNING or not 0.0 < seconds <= MAX_BUSY_SECONDS:
        return None
    return Straggler(rank.report.rank, node, seconds)


def _is_slow(rank: Straggler, median: float, factor: float) -> bool:
    return rank.busy_seconds >= factor * median and rank.busy_seconds - median >= MIN_EXCESS_SECONDS


def _find_slow_nodes(measured_ranks: Sequence[Straggler], slow_ranks: Sequence[Straggler]) -> Iterator[NodeFacts]:
    """Return the nodes whose measured ranks are all slow."""
    slow_numbers = {rank.rank for rank in slow_ranks}
    fast_nodes = {rank.node.node for rank in measured_ranks if rank.rank not in slow_numbers}
    nodes = {rank.node.node: rank.node for rank in measured_ranks if rank.node.node not in fast_nodes}
    return iter(nodes.values())


def _read_ranks(record: StragglerRecord) -> tuple[int, ...]:
    return tuple(entry.rank for entry in record.slowest)


def _keep_recorded_values(stragglers: Stragglers, record: StragglerRecord) -> Stragglers:
    """Keep the values in the status while the set of ranks stays the same, because each report differs slightly."""
    recorded = {entry.rank: entry.busy_seconds for entry in record.slowest}
    ranks = [replace(rank, busy_seconds=recorded.get(rank.rank, rank.busy_seconds)) for rank in stragglers.ranks]
    is_same = len(stragglers.ranks) == record.count and recorded.keys() <= {rank.rank for rank in ranks}
    if not is_same:
        return stragglers
    ranks.sort(key=lambda rank: (rank.rank not in recorded, -rank.busy_seconds, rank.rank))
    return Stragglers(tuple(ranks), stragglers.nodes, record.median_seconds, parse_untrusted_timestamp(record.since))


def _was_replaced(previous: Status, node: int) -> bool:
    """Whether muster has already replaced the node's pod for this reason, so that another replacement won't help."""
    history = () if previous.restarts is None else previous.restarts.history
    return any((record.reason, record.node) == (STRAGGLER, node) for record in history)


def _make_failure(job: Job, facts: JobFacts, number: int, line: str, since: float) -> Failure:
    node = facts.nodes[min(find_node_of_rank(job, number), len(facts.nodes) - 1)]
    at = since + REPLACE_SECONDS
    step = next((rank.report.step for rank in node.ranks if rank.report.rank == number), None)
    end = End(EndKind.RANK, node.node, node.name, at, rank=number, reason=STRAGGLER, lines=(line,), step=step)
    return Failure(at, (end,))


def describe_busy_time(seconds: float, median: float) -> str:
    """Describe how slow a rank is: "it is busy for 410 ms per step, 2.1 times the median"."""
    text = f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
    # A user may have edited the median.
    factor = f", {seconds / median:.1f} times the median" if median > 0 else ""
    return f"it is busy for {text} per step{factor}"
