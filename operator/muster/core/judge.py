"""Is the job over, and how did it end: one verdict from all that is known."""

from dataclasses import dataclass, replace
from enum import StrEnum

from muster.api.spec.job import Job
from muster.api.status.status import SUSPENDED, Status
from muster.api.timestamps import from_text
from muster.core.attempts import began_at, newest_attempt, was_missed
from muster.core.deadlines import active_deadline, startup_deadline
from muster.core.facts import JobFacts, ProcessState
from muster.core.failure.ends import launcher_end, rank_ends
from muster.core.failure.failure import Failure, find_failure
from muster.core.failure.problems import POD_DELETED
from muster.core.gang_release import GangRelease, release_of
from muster.core.meeting import mismatch
from muster.core.world import is_mpi, world_size
from muster_worker.contract.schema import RankState

DEADLINE_EXCEEDED = "DeadlineExceeded"
STARTUP_TIMEOUT = "StartupTimeout"
STOP_REQUESTED = "StopRequested"
SUCCEEDED = "AllRanksSucceeded"
WORLD_SIZE_MISMATCH = "WorldSizeMismatch"
NETWORK_MISMATCH = "NetworkMismatch"
RANKS_LOST = "RanksLost"


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

    `failure` names the root causes when ranks, launchers or agents failed. A verdict known from an earlier status alone
    has neither `at` nor `failure`. `started` says that the gang was told to start, whatever became of it, and
    `attempt` is that start's number, or that of the next one. `began_at` is when the job was created or last
    resumed: its deadlines count from there. `told_at` is set once the status told that the job is over: since when.
    `release` is the last time that the gang gave up its pods, while it has not started.
    """

    verdict: Verdict
    reason: str = ""
    at: float | None = None
    failure: Failure | None = None
    settled: bool = False
    started: bool = False
    attempt: int = 1
    began_at: float = 0.0
    told_at: float | None = None
    release: GangRelease | None = None

    @property
    def is_decided(self) -> bool:
        """Whether the job is over or has to end."""
        return self.verdict is not Verdict.UNDECIDED


_Cause = tuple[float, Outcome]
"""What can end the job, and its time: what came first is the reason, the rest are its secondary failures."""


def judge(job: Job, previous: Status, facts: JobFacts, now: float) -> Outcome:
    """The job's outcome at `now` (Unix seconds). Once `previous` says Complete or Failed it stays so."""
    # A restarted operator knows from the status it wrote that the ranks were told to start.
    started = previous.was_started or any(node.has_started for node in facts.nodes)
    outcome = Outcome(
        Verdict.UNDECIDED,
        settled=facts.is_settled,
        started=started,
        attempt=newest_attempt(previous, facts),
        began_at=began_at(previous, facts, now),
    )
    # What was told to the world is not taken back.
    last = previous.final_condition
    if last is not None:
        verdict = Verdict.SUCCEEDED if last.type == "Complete" else Verdict.FAILED
        return replace(outcome, verdict=verdict, reason=last.reason, told_at=from_text(last.last_transition_time))
    result = _decided(job, previous, facts, outcome, now)
    if result.is_decided or started:
        return result
    return replace(result, release=release_of(job, previous, facts, now))


def _decided(job: Job, previous: Status, facts: JobFacts, outcome: Outcome, now: float) -> Outcome:
    failure = find_failure(job, facts, started=outcome.started)
    ended = (node.has_ended or node.process.state is ProcessState.EXITED for node in facts.nodes)
    over = outcome.started and all(ended)
    # The job has completed: ignore a stop request that came later.
    if failure is None and (over or _launcher_has_succeeded(job, facts)) and _succeeded(job, facts):
        return replace(outcome, verdict=Verdict.SUCCEEDED, reason=SUCCEEDED, at=_last_end(facts))
    # What fails from here on fails because it is being stopped.
    if previous.is_suspending:
        return _suspended(previous, facts, outcome)
    # The pods are of an earlier spec: they would run what the job no longer asks for.
    if outcome.started and not previous.is_failing and was_missed(job, previous, facts):
        return _suspended(previous, facts, outcome)
    causes = [*_failures(outcome, failure), *_interventions(job, previous, facts, outcome, now)]
    if causes:
        at, first = min(causes, key=lambda cause: cause[0])
        return replace(first, at=at)
    # All ended with exit code 0, and yet it isn't what was asked for; or the pod that failed was deleted while the
    # others were being stopped: they do not start again.
    if over or previous.is_failing:
        reason = _shortfall(job, facts) if over else POD_DELETED
        return replace(outcome, verdict=Verdict.FAILED, reason=reason, at=_last_end(facts))
    return _suspended(previous, facts, outcome) if job.spec.suspend else outcome


def _suspended(previous: Status, facts: JobFacts, outcome: Outcome) -> Outcome:
    settled = facts.is_empty or previous.is_suspended
    return replace(outcome, verdict=Verdict.SUSPENDED, reason=SUSPENDED, settled=settled)


def ranks_seen(job: Job, facts: JobFacts) -> frozenset[int]:
    """The ranks of the world that ever came to be: an agent expects all of its node's, started or not."""
    reports = (rank.report for node in facts.nodes for rank in node.ranks)
    ranks = {report.rank for report in reports if report.state != RankState.STARTING}
    return frozenset(rank for rank in ranks if 0 <= rank < world_size(job))


def _failures(outcome: Outcome, failure: Failure | None) -> list[_Cause]:
    if failure is None:
        return []
    return [(failure.at, replace(outcome, verdict=Verdict.FAILED, reason=failure.reason, failure=failure))]


def _interventions(job: Job, previous: Status, facts: JobFacts, outcome: Outcome, now: float) -> list[_Cause]:
    """What ends a job that hasn't failed: a stop request, a suspension or a deadline."""
    failed = replace(outcome, verdict=Verdict.FAILED)
    causes = []
    if facts.stop_request is not None:
        causes.append((facts.stop_request.at, replace(outcome, verdict=Verdict.STOPPED, reason=STOP_REQUESTED)))
    # A suspended job has all the time, unless its end was told before.
    if job.spec.suspend and not previous.is_failing:
        return causes
    # Ranks that can't reach each other would wait for their time-outs. It was so from the start.
    if not outcome.started and mismatch(facts.nodes) is not None:
        causes.append((facts.created_at, replace(failed, reason=NETWORK_MISMATCH)))
    startup = None if outcome.started else startup_deadline(job, facts, outcome.began_at)
    if startup is not None and now >= startup:
        causes.append((startup, replace(failed, reason=STARTUP_TIMEOUT)))
    active = active_deadline(job, outcome.began_at)
    if active is not None and now >= active:
        causes.append((active, replace(failed, reason=DEADLINE_EXCEEDED)))
    return causes


def _launcher_has_succeeded(job: Job, facts: JobFacts) -> bool:
    """Whether the job's mpirun ended well: nodes other than its own end only when they are told to."""
    end = launcher_end(facts.nodes[0]) if is_mpi(job) else None
    return end is not None and end.is_good


def _succeeded(job: Job, facts: JobFacts) -> bool:
    """Every rank of the world was seen, and every rank that was seen ended by itself with exit code 0."""
    all_good = all(end.is_good for end in rank_ends(facts))
    all_exited = all(rank.has_exited for node in facts.nodes for rank in node.ranks)
    return all_good and all_exited and len(ranks_seen(job, facts)) == world_size(job)


def _shortfall(job: Job, facts: JobFacts) -> str:
    return WORLD_SIZE_MISMATCH if len(ranks_seen(job, facts)) < world_size(job) else RANKS_LOST


def _last_end(facts: JobFacts) -> float:
    return max((end.at for end in rank_ends(facts)), default=facts.created_at)
