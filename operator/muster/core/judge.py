"""Decide whether a job is over, and with which result."""

from dataclasses import replace

from muster.api.spec.job import Job
from muster.api.status.status import RESUMED, SUSPENDED, Condition, Status
from muster.api.timestamps import parse_timestamp
from muster.core.edited_source import find_source
from muster.core.facts import JobFacts, ProcessState
from muster.core.failure.ends import list_rank_ends
from muster.core.failure.failure import Failure, find_cause_deadline, find_failure
from muster.core.failure.problems import POD_DELETED
from muster.core.gang_release import find_next_release_time, find_release
from muster.core.membership.avoided_nodes import read_avoided_nodes
from muster.core.membership.elastic import explain_resize, find_resize_time
from muster.core.membership.peers import find_network_mismatch
from muster.core.outcome import (
    DEADLINE_EXCEEDED,
    NETWORK_MISMATCH,
    RANKS_LOST,
    STARTUP_TIMEOUT,
    STOP_REQUESTED,
    SUCCEEDED,
    WORLD_SIZE_MISMATCH,
    Outcome,
    Verdict,
)
from muster.core.restart_requests import find_requested_restart, make_resize, skip_backoff
from muster.core.restarts import NoRestart, find_restart, read_last_restart
from muster.core.steps.hangs import find_hang, find_hang_failure, keep_recorded_time
from muster.core.steps.started_ranks import find_started_ranks
from muster.core.steps.stragglers import find_straggler_failure, find_stragglers
from muster.core.world import compute_world_size, is_mpi

_Cause = tuple[float, Outcome]
"""A time and an outcome that can end the job. The earliest cause gives the reason."""


def judge(job: Job, previous: Status, facts: JobFacts, now: float) -> Outcome:
    """Return the job's outcome at `now` (Unix seconds). Complete or Failed in `previous` is final."""
    outcome = _build_initial_outcome(job, previous, facts, now)
    if previous.final_condition is not None:
        return apply_final_condition(job, outcome, previous.final_condition)
    result = _decide_outcome(job, previous, facts, outcome, now)
    if result.failure is not None:
        return _apply_failure_policy(job, previous, facts, result, result.failure)
    if result.is_decided or result.has_started:
        return result
    waiting_since = _find_wait_start(outcome)
    return replace(
        result,
        release=find_release(job, previous, facts, waiting_since, now),
        release_at=find_next_release_time(job, facts, waiting_since),
    )


def find_active_start(previous: Status, facts: JobFacts, now: float) -> float:
    """Return when the job was created or last resumed (Unix seconds). Its deadlines count from this time."""
    suspended_condition = previous.suspended_condition
    if suspended_condition is None:
        return facts.created_at
    # This reconciliation resumes the job.
    if suspended_condition.status == "True":
        return now
    return (
        parse_timestamp(suspended_condition.last_transition_time)
        if suspended_condition.reason == RESUMED
        else facts.created_at
    )


def find_active_deadline(job: Job, active_since: float) -> float | None:
    """Return when `activeDeadlineSeconds` ends (Unix seconds); None without a limit."""
    seconds = job.spec.active_deadline_seconds
    return None if seconds is None else active_since + seconds


def apply_final_condition(job: Job, outcome: Outcome, condition: Condition) -> Outcome:
    """Return the outcome in the status' final condition, which never changes."""
    final_since, seconds = parse_timestamp(condition.last_transition_time), job.spec.ttl_seconds_after_finished
    return replace(
        outcome,
        verdict=Verdict.SUCCEEDED if condition.type == "Complete" else Verdict.FAILED,
        reason=condition.reason,
        final_since=final_since,
        expires_at=None if seconds is None else final_since + seconds,
    )


def _build_initial_outcome(job: Job, previous: Status, facts: JobFacts, now: float) -> Outcome:
    """Return the undecided outcome of the current attempt, with its deadlines."""
    # A user may have cleared the status, so compare it with the agents' reports.
    agents = [agent for node in facts.nodes if (agent := node.current_agent) is not None]
    attempt = max([previous.current_attempt, *(agent.report.attempt for agent in agents)])
    active_since = find_active_start(previous, facts, now)
    outcome = Outcome(
        Verdict.UNDECIDED,
        hang=keep_recorded_time(find_hang(job, facts, attempt, now), previous.hang, attempt),
        stragglers=find_stragglers(job, facts, previous.stragglers, attempt, now),
        is_idle=facts.is_idle,
        # A restarted operator reads the start from the status.
        has_started=previous.was_started or any(node.has_started for node in facts.nodes),
        attempt=attempt,
        last_restart=skip_backoff(read_last_restart(previous), previous, facts, now),
        avoided_nodes=read_avoided_nodes(previous),
        active_since=active_since,
        active_deadline=find_active_deadline(job, active_since),
        resize_at=find_resize_time(job, previous, facts),
    )
    outcome = replace(outcome, source=find_source(previous, facts.requested_source, has_started=outcome.has_started))
    return (
        outcome
        if outcome.has_started
        else replace(outcome, startup_deadline=_find_startup_deadline(job, facts, outcome))
    )


def _find_wait_start(outcome: Outcome) -> float:
    """Return when the job began to wait for its nodes: at its creation, its resumption or its restart.

    For a restart of an elastic job, the wait begins at `resize_at`, when it may start without missing nodes.
    """
    last = outcome.last_restart
    times = (outcome.active_since, None if last is None else last.not_before, outcome.resize_at)
    return max(at for at in times if at is not None)


def _find_startup_deadline(job: Job, facts: JobFacts, outcome: Outcome) -> float | None:
    """Return the time by which all nodes have to be ready; None while a node is not scheduled.

    The time starts when the last pod is scheduled, because autoscalers may take long. Local nodes have no pods.
    """
    if not all(node.is_scheduled for node in facts.nodes):
        return None
    # New members may have been scheduled so long ago that the deadline has passed, although all are ready now.
    if job.spec.elastic is not None and all(node.is_ready for node in facts.nodes):
        return None
    placed = (node.process.scheduled_at for node in facts.nodes)
    since = max([_find_wait_start(outcome), *(at for at in placed if at is not None)])
    return since + job.spec.startup_timeout_seconds


def _apply_failure_policy(job: Job, previous: Status, facts: JobFacts, outcome: Outcome, failure: Failure) -> Outcome:
    """Return the outcome of a failure: the job fails, or another attempt follows."""
    # No rank of an attempt runs before its start.
    is_over = outcome.is_idle or not outcome.has_started
    restart = find_restart(job, previous, failure, outcome.last_restart)
    # The status already announces the job's end, or a user has requested it.
    is_final = previous.is_failing or facts.stop_request is not None
    if isinstance(restart, NoRestart):
        outcome = replace(outcome, no_restart_reason=restart.reason)
        # A later report may show an earlier failure, for which the policy restarts the job.
        is_open = job.spec.failure_policy is not None and not (is_final or is_over or job.spec.suspend)
        return replace(outcome, verdict=Verdict.RESTARTING) if is_open else outcome
    if is_final:
        return outcome
    if job.spec.suspend:
        return _suspend(previous, facts, replace(outcome, failure=None))
    return replace(outcome, verdict=Verdict.RESTARTING, restart=restart, is_idle=is_over)


def _decide_outcome(job: Job, previous: Status, facts: JobFacts, outcome: Outcome, now: float) -> Outcome:
    failure = find_failure(job, facts, has_started=outcome.has_started)
    ended = (node.has_ended or node.process.state is ProcessState.EXITED for node in facts.nodes)
    all_ended = outcome.has_started and all(ended)
    # The job has completed, so ignore a later stop request.
    if failure is None and (all_ended or _has_launcher_succeeded(job, facts)) and _have_ranks_succeeded(job, facts):
        return replace(outcome, verdict=Verdict.SUCCEEDED, reason=SUCCEEDED, at=_find_last_end_time(facts))
    # A failure during a suspension is a result of that suspension.
    if previous.is_suspending:
        return _suspend(previous, facts, outcome)
    # The spec has changed since muster created the pods.
    if outcome.has_started and not previous.is_failing and _has_missed_suspension(job, previous, facts):
        return _suspend(previous, facts, outcome)
    cause_deadline = None if failure is None else find_cause_deadline(job, facts, failure)
    if cause_deadline is not None and now < cause_deadline and not previous.is_failing:
        failure, outcome = None, replace(outcome, cause_deadline=cause_deadline)
    failures = (
        failure,
        find_hang_failure(job, previous, facts, outcome.hang, outcome.attempt),
        find_straggler_failure(job, previous, facts, outcome.stragglers, now),
    )
    # The ranks end because muster stops them, and some fail because their peers ended first.
    if previous.is_stopping_for_restart:
        failures, all_ended = (None, None, None), False
    failure_causes = (cause for failure in failures for cause in _list_failure_causes(outcome, failure))
    causes = [*failure_causes, *_list_other_causes(job, previous, facts, outcome, now)]
    if causes:
        at, first = min(causes, key=lambda cause: cause[0])
        return replace(first, at=at)
    # Either all ranks exited with code 0 but some are missing, or the failed pod was deleted while the other nodes
    # stopped. In both cases the job must not start again.
    if all_ended or previous.is_failing:
        reason = _choose_missing_ranks_reason(job, facts) if all_ended else POD_DELETED
        return replace(outcome, verdict=Verdict.FAILED, reason=reason, at=_find_last_end_time(facts))
    return _apply_requests(job, previous, facts, outcome, now)


def _apply_requests(job: Job, previous: Status, facts: JobFacts, outcome: Outcome, now: float) -> Outcome:
    """Return the outcome of an attempt without failures. A user may have requested a suspension or a restart."""
    if job.spec.suspend:
        return _suspend(previous, facts, outcome)
    restart = find_requested_restart(previous, facts, now)
    why = None if restart is not None else explain_resize(job, previous, facts, now)
    restart = restart if why is None else make_resize(previous, why, now)
    return outcome if restart is None else replace(outcome, verdict=Verdict.RESTARTING, restart=restart)


def _suspend(previous: Status, facts: JobFacts, outcome: Outcome) -> Outcome:
    is_idle = facts.is_empty or previous.is_suspended
    return replace(outcome, verdict=Verdict.SUSPENDED, reason=SUSPENDED, is_idle=is_idle)


def _has_missed_suspension(job: Job, previous: Status, facts: JobFacts) -> bool:
    """Whether the job was suspended and resumed while no operator ran, so that its pods have an older spec.

    Fields that affect the pods change only while a job is suspended. Outdated pods alone do not show this, because a
    new release of muster may render the same spec differently.
    """
    return facts.has_outdated_pods and job.metadata.generation > previous.observed_generation


def _list_failure_causes(outcome: Outcome, failure: Failure | None) -> list[_Cause]:
    if failure is None:
        return []
    return [(failure.at, replace(outcome, verdict=Verdict.FAILED, reason=failure.reason, failure=failure))]


def _list_other_causes(job: Job, previous: Status, facts: JobFacts, outcome: Outcome, now: float) -> list[_Cause]:
    """Return the causes other than a failure: a stop request, a network mismatch or a deadline."""
    failed = replace(outcome, verdict=Verdict.FAILED)
    causes = []
    if facts.stop_request is not None:
        causes.append((facts.stop_request.at, replace(outcome, verdict=Verdict.STOPPED, reason=STOP_REQUESTED)))
    # Deadlines don't apply to a suspended job, unless it is already failing.
    if job.spec.suspend and not previous.is_failing:
        return causes
    mismatch = None if outcome.has_started else find_network_mismatch(facts.nodes)
    # Ranks that can't reach each other would wait for their timeouts. Use the job's creation as the cause's time.
    if mismatch is not None:
        causes.append((facts.created_at, replace(failed, reason=NETWORK_MISMATCH, message=mismatch)))
    for at, reason in ((outcome.startup_deadline, STARTUP_TIMEOUT), (outcome.active_deadline, DEADLINE_EXCEEDED)):
        if at is not None and now >= at:
            causes.append((at, replace(failed, reason=reason)))
    return causes


def _has_launcher_succeeded(job: Job, facts: JobFacts) -> bool:
    """Whether mpirun ended with exit code 0. Nodes without mpirun wait for a command to end."""
    launcher = facts.nodes[0].launcher if is_mpi(job) else None
    return launcher is not None and launcher.has_succeeded


def _have_ranks_succeeded(job: Job, facts: JobFacts) -> bool:
    """Whether every rank of the world was started and exited by itself with code 0."""
    all_succeeded = all(rank.has_succeeded for node in facts.nodes for rank in node.ranks)
    return all_succeeded and len(find_started_ranks(job, facts)) == compute_world_size(job)


def _choose_missing_ranks_reason(job: Job, facts: JobFacts) -> str:
    return WORLD_SIZE_MISMATCH if len(find_started_ranks(job, facts)) < compute_world_size(job) else RANKS_LOST


def _find_last_end_time(facts: JobFacts) -> float:
    return max((end.at for end in list_rank_ends(facts)), default=facts.created_at)
