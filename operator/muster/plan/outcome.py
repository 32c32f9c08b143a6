"""Is the job over, and how did it end: one verdict from all that is known."""

from dataclasses import dataclass, replace
from enum import StrEnum

from muster.api.spec import Job
from muster.api.status import Condition, Status
from muster.plan.deadlines import active_deadline, startup_deadline
from muster.plan.ends import has_exited, rank_ends, ranks_of
from muster.plan.facts import JobFacts, ProcessState
from muster.plan.failure import Failure, find_failure
from muster.plan.nodes import has_ended, has_started, is_settled
from muster.plan.world import world_size
from muster_worker.contract import RankState

DEADLINE_EXCEEDED = "DeadlineExceeded"
STARTUP_TIMEOUT = "StartupTimeout"
STOP_REQUESTED = "StopRequested"
SUCCEEDED = "AllRanksSucceeded"
WORLD_SIZE_MISMATCH = "WorldSizeMismatch"
RANKS_LOST = "RanksLost"

FINAL = ("Complete", "Failed")
"""The conditions that end a job."""


class Verdict(StrEnum):
    """What became of the job."""

    UNDECIDED = "Undecided"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    STOPPED = "Stopped"
    SUSPENDED = "Suspended"


@dataclass(frozen=True)
class Outcome:
    """The verdict, why, and since when (Unix seconds). It is final once `settled`: nothing of the job runs any more.

    `failure` names the culprits when ranks, launchers or agents failed. A verdict known from an earlier status alone
    has neither `at` nor `failure`. `started` says that the gang was told to start, whatever became of it, and
    `incarnation` is that start's number, or that of the next one. `began_at` is when the job was created or last
    resumed: its deadlines count from there.
    """

    verdict: Verdict
    reason: str = ""
    at: float | None = None
    failure: Failure | None = None
    settled: bool = False
    started: bool = False
    incarnation: int = 1
    began_at: float = 0.0

    @property
    def is_decided(self) -> bool:
        """Whether the job is over or has to end."""
        return self.verdict is not Verdict.UNDECIDED


def judge(job: Job, previous: Status, facts: JobFacts, now: float) -> Outcome:
    """The job's outcome at `now` (Unix seconds). Once `previous` says Complete or Failed it stays so."""
    # A restarted operator knows from the status it wrote that the ranks were told to start.
    started = previous.start_time is not None or any(has_started(node) for node in facts.nodes)
    settled = all(is_settled(node) for node in facts.nodes)
    # What was told to the world is not taken back.
    last = final_condition(previous)
    if last is not None:
        verdict = Verdict.SUCCEEDED if last.type == "Complete" else Verdict.FAILED
        return Outcome(verdict, last.reason, settled=settled, started=started)
    return replace(_verdict(job, facts, now, started=started), settled=settled, started=started)


def _verdict(job: Job, facts: JobFacts, now: float, *, started: bool) -> Outcome:
    failure = find_failure(job, facts)
    over = all(has_ended(node) or node.process.state is ProcessState.EXITED for node in facts.nodes)
    # Done is done, even when somebody asked for a stop a moment too late.
    if failure is None and over and _succeeded(job, facts):
        return Outcome(Verdict.SUCCEEDED, SUCCEEDED, at=_last_end(facts))
    causes = _causes(job, facts, now, failure, started=started)
    if causes:
        at, first = min(causes, key=lambda cause: cause[0])
        return replace(first, at=at)
    # All ended with exit code 0, and yet it isn't what was asked for.
    if over:
        return Outcome(Verdict.FAILED, _shortfall(job, facts), at=_last_end(facts))
    return Outcome(Verdict.UNDECIDED)


def final_condition(previous: Status) -> Condition | None:
    """The condition that says that the job is over: Complete or Failed; None while it isn't."""
    return next((entry for entry in previous.conditions if entry.type in FINAL and entry.status == "True"), None)


def ranks_seen(job: Job, facts: JobFacts) -> frozenset[int]:
    """The ranks of the world that ever came to be: an agent expects all of its node's, started or not."""
    reports = (rank.report for node in facts.nodes for rank in ranks_of(node))
    seen = {report.rank for report in reports if report.state != RankState.STARTING}
    return frozenset(rank for rank in seen if 0 <= rank < world_size(job))


def _causes(
    job: Job, facts: JobFacts, now: float, failure: Failure | None, *, started: bool
) -> list[tuple[float, Outcome]]:
    """All that can end the job, each with its time: what came first is the reason, the rest are its consequences."""
    causes = []
    if failure is not None:
        causes.append((failure.at, Outcome(Verdict.FAILED, failure.reason, failure=failure)))
    if facts.stop_request is not None:
        causes.append((facts.stop_request.at, Outcome(Verdict.STOPPED, STOP_REQUESTED)))
    startup = startup_deadline(job, facts)
    if not started and now >= startup:
        causes.append((startup, Outcome(Verdict.FAILED, STARTUP_TIMEOUT)))
    active = active_deadline(job, facts)
    if active is not None and now >= active:
        causes.append((active, Outcome(Verdict.FAILED, DEADLINE_EXCEEDED)))
    return causes


def _succeeded(job: Job, facts: JobFacts) -> bool:
    """Every rank of the world was seen, and every rank that was seen ended by itself with exit code 0."""
    all_good = all(end.is_good for end in rank_ends(facts))
    all_exited = all(has_exited(rank) for node in facts.nodes for rank in ranks_of(node))
    return all_good and all_exited and len(ranks_seen(job, facts)) == world_size(job)


def _shortfall(job: Job, facts: JobFacts) -> str:
    return WORLD_SIZE_MISMATCH if len(ranks_seen(job, facts)) < world_size(job) else RANKS_LOST


def _last_end(facts: JobFacts) -> float:
    return max((end.at for end in rank_ends(facts)), default=facts.created_at)
