"""Decide whether a job is over, and with which result."""

from dataclasses import dataclass, replace
from enum import StrEnum

from muster.api.spec.job import Job
from muster.api.status.status import SUSPENDED, Status
from muster.api.timestamps import parse_timestamp
from muster.core.attempts import LastRestart, began_at, last_restart, newest_attempt, was_missed
from muster.core.deadlines import active_deadline, startup_deadline
from muster.core.facts import JobFacts, ProcessState
from muster.core.failure.ends import launcher_end, rank_ends
from muster.core.failure.failure import Failure, find_failure
from muster.core.failure.problems import POD_DELETED
from muster.core.gang_release import GangRelease, release_of
from muster.core.peers import find_network_mismatch
from muster.core.restarts import NoRestart, Restart, find_restart
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
    """The result of a job."""

    UNDECIDED = "Undecided"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    STOPPED = "Stopped"
    SUSPENDED = "Suspended"
    RESTARTING = "Restarting"  # the attempt has failed, and another one follows


@dataclass(frozen=True)
class Outcome:
    """The verdict, its reason, and its time `at` (Unix seconds). It is final once `settled`: the job runs no more.

    `failure` has the root causes if ranks, launchers or agents failed. A verdict that comes only from an earlier status
    has neither `at` nor `failure`. `started` is set once the gang received its start command. `attempt` is
    the number of that start, or of the next one. `began_at` is when the job was created or last
    resumed; deadlines count from it. `final_since` is when the status recorded the end of the job.
    `release` is the latest release of the gang before its start. `restart` is set for the verdict Restarting,
    `no_restart` is the reason why no attempt follows a failure. `last_restart` is the restart before this attempt.
    """

    verdict: Verdict
    reason: str = ""
    at: float | None = None
    failure: Failure | None = None
    settled: bool = False
    started: bool = False
    attempt: int = 1
    began_at: float = 0.0
    final_since: float | None = None
    release: GangRelease | None = None
    restart: Restart | None = None
    no_restart: str = ""
    last_restart: LastRestart | None = None

    @property
    def waits_since(self) -> float:
        """Since when (Unix seconds) the job waits for its nodes: since it was created, resumed or restarted."""
        return self.began_at if self.last_restart is None else max(self.began_at, self.last_restart.not_before)

    @property
    def lowest_replacement(self) -> int:
        """The lowest replacement number that a new pod may have."""
        released = 0 if self.release is None else self.release.replacement
        return released if self.last_restart is None else max(released, self.last_restart.replacement)

    @property
    def is_decided(self) -> bool:
        """Whether the attempt is over or has to end."""
        return self.verdict is not Verdict.UNDECIDED

    @property
    def is_restart_due(self) -> bool:
        """Whether nothing of the failed attempt runs, so that the status can record the next one."""
        return self.verdict is Verdict.RESTARTING and self.settled

    @property
    def ends_job(self) -> bool:
        """Whether no other attempt follows, unless a suspended job is resumed."""
        return self.verdict not in (Verdict.UNDECIDED, Verdict.RESTARTING)


_Cause = tuple[float, Outcome]
"""A time and an outcome that can end the job. The earliest cause gives the reason."""


def judge(job: Job, previous: Status, facts: JobFacts, now: float) -> Outcome:
    """Return the job's outcome at `now` (Unix seconds). Complete or Failed in `previous` is final."""
    # A restarted operator reads the start from the status.
    started = previous.was_started or any(node.has_started for node in facts.nodes)
    outcome = Outcome(
        Verdict.UNDECIDED,
        settled=facts.is_idle,
        started=started,
        attempt=newest_attempt(previous, facts),
        began_at=began_at(previous, facts, now),
        last_restart=last_restart(previous),
    )
    # A final condition never changes.
    last = previous.final_condition
    if last is not None:
        verdict = Verdict.SUCCEEDED if last.type == "Complete" else Verdict.FAILED
        return replace(
            outcome, verdict=verdict, reason=last.reason, final_since=parse_timestamp(last.last_transition_time)
        )
    result = _decide_outcome(job, previous, facts, outcome, now)
    if result.failure is not None:
        return _apply_failure_policy(job, previous, facts, result, result.failure)
    if result.is_decided or started:
        return result
    return replace(result, release=release_of(job, previous, facts, outcome.waits_since, now))


def _apply_failure_policy(job: Job, previous: Status, facts: JobFacts, outcome: Outcome, failure: Failure) -> Outcome:
    """Return the outcome of a failure: the job fails, or another attempt follows."""
    # Nothing of an attempt runs before its start.
    is_over = outcome.settled or not outcome.started
    restart = find_restart(job, previous, failure)
    # The status has announced the job's end, or a user asked for it.
    is_final = previous.is_failing or facts.stop_request is not None
    if isinstance(restart, NoRestart):
        outcome = replace(outcome, no_restart=restart.reason)
        # A later report may name an earlier failure, after which the policy wants a restart.
        is_open = job.spec.failure_policy is not None and not (is_final or is_over or job.spec.suspend)
        return replace(outcome, verdict=Verdict.RESTARTING) if is_open else outcome
    if is_final:
        return outcome
    if job.spec.suspend:
        return _suspended(previous, facts, replace(outcome, failure=None))
    return replace(outcome, verdict=Verdict.RESTARTING, restart=restart, settled=is_over)


def _decide_outcome(job: Job, previous: Status, facts: JobFacts, outcome: Outcome, now: float) -> Outcome:
    failure = find_failure(job, facts, started=outcome.started)
    ended = (node.has_ended or node.process.state is ProcessState.EXITED for node in facts.nodes)
    all_ended = outcome.started and all(ended)
    # The job has completed: ignore a stop request that came later.
    if failure is None and (all_ended or _launcher_has_succeeded(job, facts)) and _succeeded(job, facts):
        return replace(outcome, verdict=Verdict.SUCCEEDED, reason=SUCCEEDED, at=_last_end_at(facts))
    # A failure during a suspension is a result of that suspension.
    if previous.is_suspending:
        return _suspended(previous, facts, outcome)
    # The pods have an older spec, which is no longer wanted.
    if outcome.started and not previous.is_failing and was_missed(job, previous, facts):
        return _suspended(previous, facts, outcome)
    causes = [*_failure_causes(outcome, failure), *_other_causes(job, previous, facts, outcome, now)]
    if causes:
        at, first = min(causes, key=lambda cause: cause[0])
        return replace(first, at=at)
    # Either every rank exited with 0 but ranks are missing, or the failed pod was deleted while the other nodes
    # stopped: the job must not start again.
    if all_ended or previous.is_failing:
        reason = _shortfall_reason(job, facts) if all_ended else POD_DELETED
        return replace(outcome, verdict=Verdict.FAILED, reason=reason, at=_last_end_at(facts))
    return _suspended(previous, facts, outcome) if job.spec.suspend else outcome


def _suspended(previous: Status, facts: JobFacts, outcome: Outcome) -> Outcome:
    settled = facts.is_empty or previous.is_suspended
    return replace(outcome, verdict=Verdict.SUSPENDED, reason=SUSPENDED, settled=settled)


def ranks_seen(job: Job, facts: JobFacts) -> frozenset[int]:
    """The ranks that were ever started. Agents also list ranks that have not started."""
    reports = (rank.report for node in facts.nodes for rank in node.ranks)
    ranks = {report.rank for report in reports if report.state != RankState.STARTING}
    return frozenset(rank for rank in ranks if 0 <= rank < world_size(job))


def _failure_causes(outcome: Outcome, failure: Failure | None) -> list[_Cause]:
    if failure is None:
        return []
    return [(failure.at, replace(outcome, verdict=Verdict.FAILED, reason=failure.reason, failure=failure))]


def _other_causes(job: Job, previous: Status, facts: JobFacts, outcome: Outcome, now: float) -> list[_Cause]:
    """Causes other than a failure: a stop request, a network mismatch or a deadline."""
    failed = replace(outcome, verdict=Verdict.FAILED)
    causes = []
    if facts.stop_request is not None:
        causes.append((facts.stop_request.at, replace(outcome, verdict=Verdict.STOPPED, reason=STOP_REQUESTED)))
    # Deadlines don't apply to a suspended job, unless it is already failing.
    if job.spec.suspend and not previous.is_failing:
        return causes
    # Ranks that can't reach each other would only wait for their timeouts. Date the cause to the job's creation.
    if not outcome.started and find_network_mismatch(facts.nodes) is not None:
        causes.append((facts.created_at, replace(failed, reason=NETWORK_MISMATCH)))
    startup = None if outcome.started else startup_deadline(job, facts, outcome.waits_since)
    if startup is not None and now >= startup:
        causes.append((startup, replace(failed, reason=STARTUP_TIMEOUT)))
    active = active_deadline(job, outcome.began_at)
    if active is not None and now >= active:
        causes.append((active, replace(failed, reason=DEADLINE_EXCEEDED)))
    return causes


def _launcher_has_succeeded(job: Job, facts: JobFacts) -> bool:
    """Whether mpirun ended with exit code 0. Nodes without mpirun wait for a command to end."""
    end = launcher_end(facts.nodes[0]) if is_mpi(job) else None
    return end is not None and end.is_good


def _succeeded(job: Job, facts: JobFacts) -> bool:
    """Whether every rank of the world was started and exited by itself with code 0."""
    all_good = all(end.is_good for end in rank_ends(facts))
    all_exited = all(rank.has_exited for node in facts.nodes for rank in node.ranks)
    return all_good and all_exited and len(ranks_seen(job, facts)) == world_size(job)


def _shortfall_reason(job: Job, facts: JobFacts) -> str:
    return WORLD_SIZE_MISMATCH if len(ranks_seen(job, facts)) < world_size(job) else RANKS_LOST


def _last_end_at(facts: JobFacts) -> float:
    return max((end.at for end in rank_ends(facts)), default=facts.created_at)
