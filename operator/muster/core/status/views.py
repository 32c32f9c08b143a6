"""A view of every rank for the status, whether it reported or not."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.facts import JobFacts, NodeFacts, RankFacts
from muster.core.failure import rank_output
from muster.core.failure.ends import AGENT_LOST, End, rank_ends
from muster.core.failure.mpi_ends import is_secondary_failure
from muster.core.judge import Outcome
from muster.core.world import home_of, world_size
from muster_worker.contract.schema import MAX_ACTIVITY_CHARS, RankState

PENDING = "Pending"
STARTING = "Starting"
RUNNING = "Running"
SUCCEEDED = "Succeeded"
FAILED = "Failed"
STOPPED = "Stopped"
UNKNOWN = "Unknown"

NOT_REPORTED = "NotReported"
"""The reason of a rank without a collector and without a report: most jobs' ranks don't report there."""

LEARNING_SECONDS = 30.0
"""How long a rank may lack a step count before the status mentions it: importing torch takes seconds."""

_NOT_YET = ("NotHooked", "NoTorch")
"""Reasons that also apply to a rank that has just started."""


@dataclass(frozen=True)
class RankView:
    """A rank's state and its reason.

    `facts` is None for a rank that no agent reported, `end` for one that has not ended. `no_step_reason` says why a
    running rank has no step count and probably won't get one; "" otherwise.
    """

    rank: int
    node: NodeFacts
    state: str
    reason: str = ""
    facts: RankFacts | None = None
    end: End | None = None
    no_step_reason: str = ""

    @property
    def activity(self) -> str | None:
        """Its activity when it stopped: from its agent's report, else from its own traceback."""
        if self.facts is None:
            return None
        report = self.facts.report
        activity = report.activity or rank_output.collective(report.last_lines)
        return rank_output.clean(activity, limit=MAX_ACTIVITY_CHARS) if activity else None


@dataclass(frozen=True)
class Picture:
    """The input of a status at `now` (Unix seconds)."""

    job: Job
    previous: Status
    facts: JobFacts
    outcome: Outcome
    now: float

    @cached_property
    def views(self) -> tuple[RankView, ...]:
        """One view for each rank of the world, in order."""
        current = _known_ranks(self.job, self.facts)
        ends = {(end.node, end.rank): end for end in rank_ends(self.facts)}
        views = []
        for rank in range(world_size(self.job)):
            node, rank_facts = current.get(rank, (self.facts.nodes[home_of(self.job, rank)], None))
            views.append(_view(rank, node, rank_facts, ends.get((node.node, rank)), self))
        return tuple(views)


def _known_ranks(job: Job, facts: JobFacts) -> Mapping[int, tuple[NodeFacts, RankFacts]]:
    """The node of each rank. If two nodes report one rank, the rank's home node wins, else the first."""
    by_key: dict[int, tuple[NodeFacts, RankFacts]] = {}
    for node in facts.nodes:
        for rank_facts in node.ranks:
            rank = rank_facts.report.rank
            if rank not in by_key or home_of(job, rank) == node.node:
                by_key[rank] = (node, rank_facts)
    return by_key


def _view(rank: int, node: NodeFacts, rank_facts: RankFacts | None, end: End | None, picture: Picture) -> RankView:
    if end is not None:
        state, reason = _state_of_end(rank, end, picture)
    elif rank_facts is None:
        state, reason = _state_unseen(node, picture)
    else:
        state, reason = _state_alive(rank_facts, node, picture)
    return RankView(rank, node, state, reason, rank_facts, end, _no_step_reason(state, rank_facts, picture.now))


def _no_step_reason(state: str, rank: RankFacts | None, now: float) -> str:
    if state != RUNNING or rank is None or rank.report.no_step_reason is None:
        return ""
    began = rank.started_at is None or now < rank.started_at + LEARNING_SECONDS
    value = rank.report.no_step_reason
    return "" if value in _NOT_YET and began else rank_output.clean(value, limit=64)


def _state_of_end(rank: int, end: End, picture: Picture) -> tuple[str, str]:
    failure = picture.outcome.failure
    if failure is not None and failure.is_root_cause(rank, end.node):
        return FAILED, end.reason or failure.reason
    if end.is_good:
        early = failure is not None and failure.left_early(rank, end.node)
        return SUCCEEDED, "EndedEarly" if early else "Completed"
    if end.stopped:
        return STOPPED, "StoppedByMuster"
    # A rank that ended because its peer died must not be blamed.
    if picture.outcome.is_decided and is_secondary_failure(picture.job, end):
        return STOPPED, "PeerFailed"
    return FAILED, end.why


def _state_unseen(node: NodeFacts, picture: Picture) -> tuple[str, str]:
    # muster sent Start, and the node has not reported since.
    if picture.outcome.started and node.current_agent is None:
        return _state_with_agent(node, picture.outcome) if node.is_gone else (UNKNOWN, _why_unheard(picture))
    # The node ended before its agent reported ranks.
    if picture.outcome.started and node.is_gone and node.has_started and not node.has_ended:
        return _state_with_agent(node, picture.outcome)
    if node.is_gone or node.has_ended or not node.has_started:
        return PENDING, "NeverStarted"
    if picture.facts.is_silent(node, picture.now):
        return UNKNOWN, "NodeSilent"
    # A rank that is stopped before its first report may or may not have run.
    return STARTING, "LauncherRuns"


def _why_unheard(picture: Picture) -> str:
    return "NotHeard" if picture.job.spec.traits.has_collector else NOT_REPORTED


def _state_alive(rank: RankFacts, node: NodeFacts, picture: Picture) -> tuple[str, str]:
    # Agents expect all ranks of their node, whether or not a launcher starts them, and report so before they exit.
    if node.has_ended and rank.report.state == RankState.STARTING:
        return PENDING, "NeverStarted"
    if node.is_gone:
        return _state_with_agent(node, picture.outcome)
    if node.has_ended:
        return UNKNOWN, "EndUnknown"
    if picture.facts.is_silent(node, picture.now):
        return UNKNOWN, "NodeSilent"
    return (STARTING, "ProcessStarts") if rank.report.state == RankState.STARTING else (RUNNING, "ProcessRuns")


def _state_with_agent(node: NodeFacts, outcome: Outcome) -> tuple[str, str]:
    """Ranks die with their agent, as far as is known."""
    problem = node.process.problem
    reason = problem.reason if problem is not None else AGENT_LOST
    if _is_root_cause(node, outcome):
        return FAILED, reason
    # On a disconnected Kubernetes node they may run until it deletes the pod.
    return (STOPPED if node.process.lost_at is None else UNKNOWN), reason


def _is_root_cause(node: NodeFacts, outcome: Outcome) -> bool:
    failure = outcome.failure
    if failure is None:
        return not outcome.is_decided
    return node.node in failure.lost_nodes
