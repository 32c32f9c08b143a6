"""Find ranks that run but have stopped completing optimizer steps, and decide whether this fails the attempt.

A rank that never completed a step does not hang: it may prepare data, or use no optimizer. Neither a metric nor the
step from which a script resumes counts as a completed step. An old report is no evidence of a hang, because the rank
may have completed a step since then.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from muster.api.spec.job import Job
from muster.api.status.hang import HangRecord
from muster.api.status.status import Status
from muster.api.timestamps import parse_untrusted_timestamp
from muster.core.facts import JobFacts, NodeFacts, RankFacts
from muster.core.failure.ends import End, EndKind
from muster.core.failure.failure import Failure
from muster.core.failure_timeouts import get_hang_timeout
from muster.core.steps.blocked_collective import BlockedCollective, find_blocked_collective
from muster.core.world import find_node_of_rank
from muster_worker.contract.collectives import GroupCollective
from muster_worker.contract.schema import STOPPED_BY_DEBUGGER, STOPPED_BY_SIGNAL, AgentPhase, RankState

HUNG = "Hung"
"""The reason of the condition Stalled, of a failure, and of each rank that hangs."""

JITTER_SECONDS = 5.0
"""The times of a step in two reports may differ by this much, because reports take different times to arrive."""


@dataclass(frozen=True)
class HungRank:
    """A rank that has completed no step since `since` (Unix seconds)."""

    rank: int
    node: NodeFacts
    since: float
    step: int | None = None
    activity: str | None = None
    collectives: tuple[GroupCollective, ...] = ()


@dataclass(frozen=True)
class Hang:
    """The ranks that hang. The first is the most likely cause, for which the others wait.

    `since` is when the rank that hangs longest completed its last step (Unix seconds). `timeout` is in seconds.
    `blocked` is None if torch's records don't show the collective in which the ranks wait.
    """

    ranks: tuple[HungRank, ...]
    since: float
    timeout: float
    blocked: BlockedCollective | None = None


def find_hang(job: Job, facts: JobFacts, attempt: int, now: float) -> Hang | None:
    """Return the ranks of `attempt` that hang; None if no rank hangs, or if reports are missing."""
    busy = [node for node in facts.nodes if not node.is_idle]
    # The others may wait for a rank of a silent node. That rank may be in a phase without steps, which is not a hang.
    if any(facts.is_silent(node, now) for node in busy):
        return None
    # Without a collector, reports are optional.
    if job.spec.traits.has_collector and any(node.current_agent is None for node in busy):
        return None
    running = [(node, rank) for node in busy for rank in _find_running_ranks(node, attempt)]
    if any(rank.report.phase is not None for _, rank in running):
        return None
    # The others wait for a rank whose error ends the attempt (`failure.py`).
    if any(rank.is_failing for _, rank in running):
        return None
    # A phase without steps also explains the waits of other ranks after its rank has ended.
    phase_ended_at = max((rank.phase_ended_at or 0.0 for node in facts.nodes for rank in node.ranks), default=0.0)
    timeout = get_hang_timeout(job)
    idle = [(node, rank, _compute_idle_seconds(node, rank, phase_ended_at)) for node, rank in running]
    longest = max((seconds for _, _, seconds in idle), default=0.0)
    # A node with an older report may have a rank that caused the hang.
    if longest < timeout or not _have_all_reported(busy, longest - timeout):
        return None
    hung = [
        _make_hung_rank(node, rank, _get_last_step_time(rank)) for node, rank, seconds in idle if seconds >= timeout / 2
    ]
    blocked = _find_blocked_collective(hung)
    return Hang(_sort_by_suspicion(hung, blocked), min(rank.since for rank in hung), timeout, blocked)


def keep_recorded_time(hang: Hang | None, record: HangRecord | None, attempt: int) -> Hang | None:
    """Return the hang with the time in the status, if the status records the same hang of `attempt`.

    Otherwise each report would change the time a little, and cause a write of the status.
    """
    if hang is None or record is None or record.attempt != attempt:
        return hang
    since = parse_untrusted_timestamp(record.since)
    return replace(hang, since=since) if abs(since - hang.since) <= JITTER_SECONDS else hang


def find_hang_failure(job: Job, previous: Status, facts: JobFacts, hang: Hang | None, attempt: int) -> Failure | None:
    """Return the failure of the attempt by a hang; None if there is none, or without `hangTimeoutSeconds`.

    A failure in the status remains a failure, because a rank may complete another step while muster stops it.
    """
    policy, record = job.spec.failure_policy, previous.hang
    timeout = None if policy is None else policy.hang_timeout_seconds
    if record is not None and record.is_failure and record.attempt == attempt:
        return _make_recorded_failure(job, facts, record, timeout or get_hang_timeout(job))
    # The ranks stop anyway, and may write a checkpoint meanwhile.
    is_stopping = facts.stop_request is not None or job.spec.suspend or previous.is_failing
    if hang is None or timeout is None or is_stopping:
        return None
    return _make_failure(replace(hang.ranks[0], since=hang.since), timeout, hang.blocked)


def _find_running_ranks(node: NodeFacts, attempt: int) -> Iterator[RankFacts]:
    """Yield the node's running ranks, unless they belong to another attempt or something stops them."""
    agent = node.current_agent
    if agent is None or agent.terminated_at is not None:
        return
    report = agent.report
    if report.attempt == attempt and report.phase == AgentPhase.RUNNING:
        yield from (rank for rank in agent.ranks if rank.report.state == RankState.RUNNING)


def _compute_idle_seconds(node: NodeFacts, rank: RankFacts, phase_ended_at: float) -> float:
    """Return the seconds from the rank's last step, or the end of a later phase, to its agent's last report."""
    if rank.last_step_at is None or node.agent is None or rank.first_step_at is None:
        return 0.0
    return node.agent.last_report_at - max(rank.last_step_at, phase_ended_at)


def _have_all_reported(nodes: list[NodeFacts], seconds: float) -> bool:
    """Whether each node has reported within the `seconds` before the last report of all nodes."""
    times = [node.agent.last_report_at for node in nodes if node.agent is not None]
    return min(times) >= max(times) - seconds


def _get_last_step_time(rank: RankFacts) -> float:
    """Return the time of the rank's last step, which is the same for every report, so that a message may contain it."""
    last_step_at, highest_step_at = rank.last_step_at or 0.0, rank.highest_step_at
    # A script may count its steps from 0 again. Then the highest step is older than the last step.
    return (
        highest_step_at
        if highest_step_at is not None and last_step_at - highest_step_at <= JITTER_SECONDS
        else last_step_at
    )


def _make_hung_rank(node: NodeFacts, rank: RankFacts, since: float) -> HungRank:
    report = rank.report
    return HungRank(report.rank, node, since, report.step, report.activity, report.collectives)


def _find_blocked_collective(ranks: list[HungRank]) -> BlockedCollective | None:
    return find_blocked_collective({rank.rank: rank.collectives for rank in ranks})


def _sort_by_suspicion(ranks: list[HungRank], blocked_collective: BlockedCollective | None) -> tuple[HungRank, ...]:
    """Sort by suspicion: those that others wait for in a collective, then stopped processes, then rare activities.

    A rank that waits in a loop may have been seen in another of its lines than the others.
    """
    missing = frozenset(() if blocked_collective is None else blocked_collective.missing_ranks)
    stopped = frozenset((STOPPED_BY_SIGNAL, STOPPED_BY_DEBUGGER))
    activities = Counter(rank.activity for rank in ranks)
    return tuple(
        sorted(
            ranks,
            key=lambda rank: (
                rank.rank not in missing,
                rank.activity not in stopped,
                activities[rank.activity],
                rank.step or 0,
                rank.rank,
            ),
        )
    )


def _make_recorded_failure(job: Job, facts: JobFacts, record: HangRecord, timeout: float) -> Failure:
    """Return the failure in the status. The agents also report the last activity of ranks that have ended."""
    node = facts.nodes[min(find_node_of_rank(job, record.rank), len(facts.nodes) - 1)]
    since = parse_untrusted_timestamp(record.since)
    reported = [_make_hung_rank(node, rank, since) for node in facts.nodes for rank in node.ranks]
    suspect = next((rank for rank in reported if rank.rank == record.rank), HungRank(record.rank, node, since))
    return _make_failure(replace(suspect, step=record.step), timeout, _find_blocked_collective(reported))


def _make_failure(rank: HungRank, timeout: float, blocked_collective: BlockedCollective | None) -> Failure:
    # Round to milliseconds, as in the status, so that a recorded failure has the same time.
    at = round(rank.since, 3) + timeout
    lines = [f"it completed no step for {timeout:.0f} s"]
    if blocked_collective is not None and rank.rank in blocked_collective.missing_ranks:
        lines.append(_describe_missing_rank(rank, blocked_collective))
    end = End(
        EndKind.RANK,
        rank.node.node,
        rank.node.name,
        at,
        rank=rank.rank,
        reason=HUNG,
        lines=tuple(lines),
        step=rank.step,
        activity=rank.activity,
    )
    return Failure(at, (end,))


def _describe_missing_rank(rank: HungRank, blocked_collective: BlockedCollective) -> str:
    count = len(blocked_collective.waiting_ranks)
    others = f"{count} other ranks had" if count > 1 else f"rank {blocked_collective.waiting_ranks[0]} had"
    last_collective = rank.collectives[0].text
    return f"it had not entered {blocked_collective.text}, but {others}; its last collective was {last_collective}"
