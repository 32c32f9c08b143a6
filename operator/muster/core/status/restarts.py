"""The status' record of restarts: which attempts failed, why, and how much time each failure cost."""

from muster.api.spec.failure_policy import MAX_HISTORY
from muster.api.status.restarts import MAX_COUNT, MAX_REASON_CHARS, NO_RESTARTS, RestartRecord, Restarts
from muster.api.timestamps import format_milliseconds, parse_timestamp
from muster.core.facts import ProcessState
from muster.core.failure import rank_output
from muster.core.failure.failure import Failure
from muster.core.outcome import Verdict
from muster.core.restarts import Restart, RestartBudget
from muster.core.status.failure_sentence import failure_sentence
from muster.core.status.views import RUNNING, SUCCEEDED, StatusInput

_MAX_MESSAGE_CHARS = 300
"""The limit for each of up to 32 messages in a status."""


def restarts_of(status_input: StatusInput) -> Restarts | None:
    """Return the record of the job's restarts. A failure is added once its attempt is over and another one follows."""
    outcome, before = status_input.outcome, status_input.previous.restarts
    if outcome.is_restart_due and outcome.restart and outcome.failure:
        return _add_failure(status_input, before or NO_RESTARTS, outcome.restart, outcome.failure)
    if before is None:
        return None
    record = _add_recovery_time(status_input, before)
    has_started = outcome.has_started and outcome.verdict is not Verdict.RESTARTING
    return record.model_copy(update={"is_pending": False}) if has_started or status_input.starts else record


def _add_failure(status_input: StatusInput, before: Restarts, restart: Restart, failure: Failure) -> Restarts:
    nodes, policy = status_input.facts.nodes, status_input.job.spec.failure_policy
    in_place = policy is None or policy.restart_scope == "InPlace"
    ended = sum(node.process.state is not ProcessState.RUNNING for node in nodes)
    record = RestartRecord(
        attempt=status_input.outcome.attempt,
        reason=failure.reason[:MAX_REASON_CHARS],
        message=rank_output.clean(
            failure_sentence(status_input.job, failure, status_input.views), limit=_MAX_MESSAGE_CHARS
        ),
        rank=failure.first.rank,
        node=failure.first.node,
        step=failure.first.step or None,
        counts_as=restart.counts_as.value,
        replaced_pods=ended if in_place else len(nodes),
        at=format_milliseconds(restart.failed_at),
    )
    replacement = max(before.replacement, *(node.process.replacement + 1 for node in nodes))
    return Restarts(
        total=min(MAX_COUNT, before.total + 1),
        failures=min(MAX_COUNT, before.failures + (restart.counts_as is RestartBudget.FAILURE)),
        disruptions=min(MAX_COUNT, before.disruptions + (restart.counts_as is RestartBudget.DISRUPTION)),
        replacement=min(MAX_COUNT, replacement),
        is_pending=True,
        not_before=format_milliseconds(status_input.now + restart.backoff_seconds),
        history=_limit_history((*before.history, record)),
    )


def _limit_history(history: tuple[RestartRecord, ...]) -> tuple[RestartRecord, ...]:
    """Limit the history to `MAX_HISTORY` records: drop old ones that count for no budget first."""
    if len(history) <= MAX_HISTORY:
        return history
    uncounted = (index for index, record in enumerate(history[:-1]) if record.counts_as == RestartBudget.NOTHING)
    drop_index = next(uncounted, 0)
    return (*history[:drop_index], *history[drop_index + 1 :])


def _add_recovery_time(status_input: StatusInput, before: Restarts) -> Restarts:
    """Add the time that the last failure cost, once all ranks run again."""
    last = status_input.previous.last_restart
    if last is None or last.seconds_lost is not None:
        return before
    if any(view.state not in (RUNNING, SUCCEEDED) for view in status_input.views):
        return before
    starts = (view.facts.started_at for view in status_input.views if view.facts is not None)
    running_since = max((at for at in starts if at is not None), default=status_input.now)
    try:
        seconds = round(max(0.0, running_since - parse_timestamp(last.at)), 3)
    except ValueError:
        return before  # a user has edited the time
    done = last.model_copy(update={"seconds_lost": seconds})
    return before.model_copy(update={"history": (*before.history[:-1], done)})
