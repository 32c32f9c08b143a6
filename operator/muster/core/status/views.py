"""The input of the status, with a view of each rank, even of ranks without a report."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.facts import JobFacts, NodeFacts, RankFacts
from muster.core.failure import rank_output
from muster.core.failure.ends import AGENT_LOST, End, list_rank_ends
from muster.core.failure.mpi_root_cause import is_secondary_failure
from muster.core.outcome import Outcome
from muster.core.status.problems import SharedProblem, describe_release, group_problems
from muster.core.steps.step_counts import find_reason_display_time
from muster.core.world import compute_world_size, find_node_of_rank
from muster_worker.contract.schema import MAX_ACTIVITY_CHARS, RankState

PENDING = "Pending"
STARTING = "Starting"
RUNNING = "Running"
SUCCEEDED = "Succeeded"
FAILED = "Failed"
STOPPED = "Stopped"
UNKNOWN = "Unknown"

NOT_EXITED = "NotExited"
"""The reason of a rank that has raised an error that nothing caught, and still runs."""

NOT_REPORTED = "NotReported"
"""The reason of a rank without a report in a job without a collector, where reports are optional."""


@dataclass(frozen=True)
class RankView:
    """A rank's state and its reason.

    `facts` is None for a rank that no agent has reported. `end` is None for a rank that has not ended. `no_step_reason`
    is why a running rank probably never gets a step count; "" otherwise.
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
        """The rank's activity when it stopped, from the agent's report or else from its traceback."""
        if self.facts is None:
            return None
        report = self.facts.report
        activity = report.activity or rank_output.find_collective(report.last_lines)
        return rank_output.sanitize_line(activity, limit=MAX_ACTIVITY_CHARS) if activity else None

    @property
    def error_line(self) -> str:
        """The rank's error in one line, or what its last lines show; "" without both."""
        if self.end is not None:
            return self.end.error_line
        error = None if self.facts is None else self.facts.report.error
        return "" if error is None else rank_output.get_message(error.text)

    @property
    def last_collective(self) -> str | None:
        """The collective that the rank entered last when it hung; None if its agent reports none."""
        if self.facts is None or not self.facts.report.collectives:
            return None
        return rank_output.sanitize_line(self.facts.report.collectives[0].text)


@dataclass(frozen=True)
class StatusInput:
    """The input of a job's status at `now` (Unix seconds).

    `starts_ranks` is set if muster sends the start command now.
    """

    job: Job
    previous: Status
    facts: JobFacts
    outcome: Outcome
    now: float
    starts_ranks: bool = False

    @cached_property
    def views(self) -> tuple[RankView, ...]:
        """One view for each rank of the world, in order."""
        current = _find_reported_ranks(self.job, self.facts)
        ends = {(end.node, end.rank): end for end in list_rank_ends(self.facts)}
        views = []
        for rank in range(compute_world_size(self.job)):
            node, rank_facts = current.get(rank, (self.facts.nodes[find_node_of_rank(self.job, rank)], None))
            views.append(_build_view(rank, node, rank_facts, ends.get((node.node, rank)), self))
        return tuple(views)

    @cached_property
    def shared_problems(self) -> tuple[SharedProblem, ...]:
        """The problems of all nodes, grouped."""
        return group_problems(self.facts.nodes, len(self.facts.nodes))

    @cached_property
    def release_message(self) -> str | None:
        """The message about a release of the gang that is under way; None without one."""
        release = self.outcome.release
        if release is None or not release.is_in_progress:
            return None
        return describe_release(self.job, self.previous, self.facts, release)


def _find_reported_ranks(job: Job, facts: JobFacts) -> Mapping[int, tuple[NodeFacts, RankFacts]]:
    """Return the node and the facts of each reported rank. If two nodes report a rank, prefer the rank's own node."""
    by_key: dict[int, tuple[NodeFacts, RankFacts]] = {}
    for node in facts.nodes:
        for rank_facts in node.ranks:
            rank = rank_facts.report.rank
            if rank not in by_key or find_node_of_rank(job, rank) == node.node_rank:
                by_key[rank] = (node, rank_facts)
    return by_key


def _build_view(
    rank: int, node: NodeFacts, rank_facts: RankFacts | None, end: End | None, status_input: StatusInput
) -> RankView:
    if end is not None:
        state, reason = _classify_end(rank, end, status_input)
    elif rank_facts is None:
        state, reason = _classify_without_report(node, status_input)
    else:
        state, reason = _classify_running_rank(rank_facts, node, status_input)
    return RankView(
        rank, node, state, reason, rank_facts, end, _find_no_step_reason(state, rank_facts, status_input.now)
    )


def _find_no_step_reason(state: str, rank: RankFacts | None, now: float) -> str:
    if state != RUNNING or rank is None or rank.report.no_step_reason is None:
        return ""
    at = find_reason_display_time(rank)
    return "" if at is None or now < at else rank_output.sanitize_line(rank.report.no_step_reason, limit=64)


def _classify_end(rank: int, end: End, status_input: StatusInput) -> tuple[str, str]:
    failure = status_input.outcome.failure
    if failure is not None and failure.is_root_cause(rank, end.node):
        return FAILED, end.reason or failure.reason
    if end.is_success:
        early = failure is not None and failure.has_exited_early(rank, end.node)
        return SUCCEEDED, "EndedEarly" if early else "Completed"
    if end.stopped:
        return STOPPED, "StoppedByMuster"
    # The rank ended because its peer died.
    if status_input.outcome.is_decided and is_secondary_failure(status_input.job, end):
        return STOPPED, "PeerFailed"
    return FAILED, end.failure_reason


def _classify_without_report(node: NodeFacts, status_input: StatusInput) -> tuple[str, str]:
    # The node received the start command but has not reported since.
    if status_input.outcome.has_started and node.current_agent is None:
        return (
            _classify_lost_rank(node, status_input.outcome)
            if node.has_no_agent
            else (UNKNOWN, _choose_no_report_reason(status_input))
        )
    # The node ended before its agent reported any rank.
    if status_input.outcome.has_started and node.has_no_agent and node.has_started and not node.has_ended:
        return _classify_lost_rank(node, status_input.outcome)
    if node.has_no_agent or node.has_ended or not node.has_started:
        return PENDING, "NeverStarted"
    if status_input.facts.is_silent(node, status_input.now):
        return UNKNOWN, "NodeSilent"
    # A rank without a report may or may not have run.
    return STARTING, "LauncherRuns"


def _choose_no_report_reason(status_input: StatusInput) -> str:
    return "NotHeard" if status_input.job.spec.traits.has_collector else NOT_REPORTED


def _classify_running_rank(rank: RankFacts, node: NodeFacts, status_input: StatusInput) -> tuple[str, str]:
    # Agents report every rank of their node, even if the launcher never starts it.
    if node.has_ended and rank.report.state == RankState.STARTING:
        return PENDING, "NeverStarted"
    if node.has_no_agent:
        return _classify_lost_rank(node, status_input.outcome)
    if node.has_ended:
        return UNKNOWN, "EndUnknown"
    if status_input.facts.is_silent(node, status_input.now):
        return UNKNOWN, "NodeSilent"
    if rank.is_failing:
        return RUNNING, NOT_EXITED
    return (STARTING, "ProcessStarts") if rank.report.state == RankState.STARTING else (RUNNING, "ProcessRuns")


def _classify_lost_rank(node: NodeFacts, outcome: Outcome) -> tuple[str, str]:
    """Return the state of a rank whose agent is lost, which probably ended with its agent."""
    problem = node.process.problem
    reason = problem.reason if problem is not None else AGENT_LOST
    if _is_root_cause(node, outcome):
        return FAILED, reason
    # On a disconnected Kubernetes node, ranks may run until the kubelet deletes the pod.
    return (STOPPED if node.process.lost_at is None else UNKNOWN), reason


def _is_root_cause(node: NodeFacts, outcome: Outcome) -> bool:
    failure = outcome.failure
    if failure is None:
        return not outcome.is_decided
    return node.node in failure.failed_nodes
