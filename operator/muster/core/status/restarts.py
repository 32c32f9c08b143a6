"""The status' record of restarts: which attempts failed, why, and what that cost."""

from muster.api.spec.failure_policy import MAX_HISTORY
from muster.api.status.restarts import RestartRecord, Restarts
from muster.api.timestamps import format_milliseconds, parse_timestamp
from muster.core.facts import ProcessState
from muster.core.failure.failure import Failure
from muster.core.judge import Verdict
from muster.core.restarts import Counted, Restart
from muster.core.status.failure_sentence import failure_sentence
from muster.core.status.fit import fit
from muster.core.status.views import RUNNING, SUCCEEDED, StatusInput

NONE = Restarts(total=0, failures=0, disruptions=0, replacement=0)
"""What a job starts with that has not failed yet."""


def restarts_of(status_input: StatusInput) -> Restarts | None:
    """The record with the failure that muster restarts the job after, once nothing of its attempt runs any more."""
    outcome, before = status_input.outcome, status_input.previous.restarts
    if outcome.verdict is Verdict.RESTARTING and outcome.settled and outcome.restart and outcome.failure:
        return _with_failure(status_input, before or NONE, outcome.restart, outcome.failure)
    return None if before is None else _with_recovery(status_input, before)


def _with_failure(status_input: StatusInput, before: Restarts, restart: Restart, failure: Failure) -> Restarts:
    nodes, policy = status_input.facts.nodes, status_input.job.spec.failure_policy
    in_place = policy is None or policy.restart_scope == "InPlace"
    ended = sum(node.process.state is not ProcessState.RUNNING for node in nodes)
    record = RestartRecord(
        attempt=status_input.outcome.attempt,
        reason=failure.reason,
        message=fit(failure_sentence(status_input.job, failure, status_input.views)),
        rank=failure.first.rank,
        node=failure.first.node,
        step=failure.first.step or None,
        counts_as=restart.counts_as.value,
        replaced_pods=ended if in_place else len(nodes),
        at=format_milliseconds(failure.at),
    )
    return Restarts(
        total=before.total + 1,
        failures=before.failures + (restart.counts_as is Counted.FAILURE),
        disruptions=before.disruptions + (restart.counts_as is Counted.DISRUPTION),
        replacement=max(before.replacement, *(node.process.replacement + 1 for node in nodes)),
        not_before=format_milliseconds(failure.at + restart.backoff_seconds) if restart.backoff_seconds else None,
        history=(*before.history, record)[-MAX_HISTORY:],
    )


def _with_recovery(status_input: StatusInput, before: Restarts) -> Restarts:
    """The record with the time that the last failure cost, once all ranks run again."""
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
        return before  # a time that is not muster's
    done = last.model_copy(update={"seconds_lost": seconds})
    return before.model_copy(update={"history": (*before.history[:-1], done)})
