"""Decide by `spec.failurePolicy` whether another attempt follows a failed one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from muster.api.plurals import pluralize
from muster.api.spec.failure_policy import FailurePolicy, FailureRule
from muster.api.spec.job import Job
from muster.api.status.restarts import NO_RESTARTS, RestartRecord, Restarts
from muster.api.status.status import Status
from muster.api.timestamps import parse_untrusted_timestamp
from muster.core.failure.ends import NODE_LOST, NODE_STOPPED, STRAGGLER, End, EndKind
from muster.core.failure.failure import Failure
from muster.core.failure.problems import EVICTED, NODE_SHUTDOWN, POD_DELETED, PREEMPTED, REFUSED_BY_KUBELET
from muster_worker.contract.schema import FENCED, EndReason

DISRUPTIONS = frozenset(
    (FENCED, NODE_LOST, NODE_STOPPED, POD_DELETED, PREEMPTED, EVICTED, NODE_SHUTDOWN, REFUSED_BY_KUBELET)
)
"""The reasons of failures that the cluster causes, not the script."""

RESTART_REQUESTED = "RestartRequested"
"""The reason in the history if a user has requested the restart."""

RESIZED = "Resized"
"""The reason in the history if muster has stopped the ranks to change the number of nodes."""

PLANNED_RESTARTS = (RESTART_REQUESTED, RESIZED)
"""The reasons of restarts without a failure."""

SAME_FAILURE_LIMIT = 3
"""muster ends the job after this many consecutive attempts that fail at the same step for the same reason.

The cause is probably the script or its data.
"""

SHORT_ATTEMPT_SECONDS = 30.0
"""After an attempt that fails sooner than this, muster waits before the next attempt."""

FIRST_BACKOFF_SECONDS = 2.0
MAX_BACKOFF_SECONDS = 300.0

_USAGE_ERROR = 2
"""The exit code of argparse and of Python itself for a wrong command line."""

_CODE_ERRORS = ("SyntaxError:", "IndentationError:", "ImportError:", "ModuleNotFoundError:")
_START_ERRORS = frozenset(
    (EndReason.COMMAND_NOT_FOUND, EndReason.COMMAND_NOT_EXECUTABLE, EndReason.WORLD_SIZE_MISMATCH)
)


class RestartBudget(StrEnum):
    """The budget that a restart counts against."""

    FAILURE = "Failure"
    DISRUPTION = "Disruption"
    NOTHING = "Nothing"


@dataclass(frozen=True)
class LastRestart:
    """The restart before the current attempt. `replacement` is the lowest replacement number of this attempt's pods.

    The attempt starts at `not_before` (Unix seconds) at the earliest. muster always replaces the pod of
    `straggler_node`.
    """

    replacement: int
    not_before: float
    straggler_node: int | None = None


@dataclass(frozen=True)
class Restart:
    """The decision that another attempt follows, at least `backoff_seconds` after `failed_at` (Unix seconds).

    `budget_text` tells users which part of the budget is used: "1 of 3". `resize_reason` is why muster changes the
    number of nodes; "" if the restart has another reason.
    """

    counts_as: RestartBudget
    failed_at: float
    backoff_seconds: float
    budget_text: str
    resize_reason: str = ""


@dataclass(frozen=True)
class NoRestart:
    """The decision that the job ends. `reason` is a text for users; "" for a job without a failure policy."""

    reason: str = ""


def read_last_restart(previous: Status) -> LastRestart | None:
    """Return the restart before the current attempt; None for an attempt that follows no failure."""
    restarts, record = previous.restarts, previous.last_restart
    if restarts is None or record is None:
        return None
    straggler_node = record.node if record.reason == STRAGGLER else None
    return LastRestart(
        restarts.replacement, parse_untrusted_timestamp(restarts.not_before or record.at), straggler_node
    )


def _find_failure_time(previous: Status, failure: Failure, last: LastRestart | None) -> float:
    """Return when the attempt failed, or its start if that is later: a lost pod may seem to have failed earlier."""
    if last is not None:
        return max(failure.at, last.not_before)
    return (
        failure.at if previous.start_time is None else max(failure.at, parse_untrusted_timestamp(previous.start_time))
    )


def find_restart(job: Job, previous: Status, failure: Failure, last: LastRestart | None) -> Restart | NoRestart:
    """Apply the job's failure policy to this failure of its current attempt, which follows the restart `last`."""
    policy = job.spec.failure_policy
    if policy is None:
        return NoRestart()
    restarts = previous.restarts or NO_RESTARTS
    failure = replace(failure, at=_find_failure_time(previous, failure, last))
    index, rule = next(_find_matching_rules(policy, failure.first), (0, None))
    if rule is None:
        return _apply_default_policy(policy, restarts, failure)
    if rule.action == "Fail":
        return NoRestart(f"failurePolicy.rules[{index}] says Fail")
    if rule.action == "Ignore":
        return Restart(
            RestartBudget.NOTHING,
            failure.at,
            _compute_backoff_seconds(restarts, failure),
            f"failurePolicy.rules[{index}] says Ignore",
        )
    return _restart_within_budget(policy, restarts, failure, RestartBudget.FAILURE)


def _apply_default_policy(policy: FailurePolicy, restarts: Restarts, failure: Failure) -> Restart | NoRestart:
    """Decide about a failure that no rule matches."""
    if failure.reason in DISRUPTIONS:
        return _restart_within_budget(policy, restarts, failure, RestartBudget.DISRUPTION)
    # The same script would give the same error again.
    if _is_script_error(failure.first):
        return NoRestart("a restart would give the same error" if policy.max_restarts else "")
    if _has_failed_repeatedly(restarts, failure):
        return NoRestart(f"it failed like this {SAME_FAILURE_LIMIT} times in a row, at step {failure.first.step}")
    return _restart_within_budget(policy, restarts, failure, RestartBudget.FAILURE)


def find_rule(policy: FailurePolicy, end: End) -> FailureRule | None:
    """Return the rule of the policy that applies to a failure; None if none matches."""
    return next((rule for _, rule in _find_matching_rules(policy, end)), None)


def _find_matching_rules(policy: FailurePolicy, end: End) -> Iterator[tuple[int, FailureRule]]:
    for index, rule in enumerate(policy.rules):
        if _matches_rule(rule, end):
            yield index, rule


def _matches_rule(rule: FailureRule, end: End) -> bool:
    # A slow rank has not failed: only a rule that names the reason makes it a failure.
    if end.failure_reason == STRAGGLER and STRAGGLER not in rule.reasons:
        return False
    criteria = (
        (rule.exit_codes, end.exit_code),
        (rule.signals, end.signal),
        (rule.reasons, end.failure_reason),
        (rule.ranks, end.rank),
        (rule.nodes, end.node),
    )
    return all(value in values for values, value in criteria if values)


def _is_script_error(end: End) -> bool:
    # The agent reports that it can't work: its image, its network or its folders are wrong.
    if end.kind is EndKind.NODE or end.reason in _START_ERRORS:
        return True
    if end.step:
        return False
    return end.exit_code == _USAGE_ERROR or any(error in end.error_line for error in _CODE_ERRORS)


def _has_failed_repeatedly(restarts: Restarts, failure: Failure) -> bool:
    """Whether the last attempts failed for the same reason and at the same step as this attempt."""
    first, last = failure.first, _find_last_attempts(restarts.history)[1 - SAME_FAILURE_LIMIT :]
    if not first.step or len(last) < SAME_FAILURE_LIMIT - 1:
        return False
    return all((record.reason, record.step) == (failure.reason, first.step) for record in last)


def _find_last_attempts(history: Sequence[RestartRecord]) -> tuple[RestartRecord, ...]:
    """Return the records of the last attempts that followed one another.

    The history is limited, and has no record of an attempt that was suspended.
    """
    records: list[RestartRecord] = []
    for record in reversed(history):
        if records and record.attempt != records[-1].attempt - 1:
            break
        records.append(record)
    return tuple(reversed(records))


def _restart_within_budget(
    policy: FailurePolicy, restarts: Restarts, failure: Failure, counts_as: RestartBudget
) -> Restart | NoRestart:
    name, limit, total = (
        ("maxRestarts", policy.max_restarts, restarts.failures)
        if counts_as is RestartBudget.FAILURE
        else ("maxDisruptions", policy.max_disruptions, restarts.disruptions)
    )
    window = policy.window_seconds
    used = total if window is None else _count_restarts_since(restarts, counts_as, failure.at - window)
    if used < limit:
        return Restart(counts_as, failure.at, _compute_backoff_seconds(restarts, failure), f"{used + 1} of {limit}")
    within = "" if window is None else f" within {pluralize(window, 'second')}"
    return NoRestart(f"failurePolicy.{name} ({limit}) is used up{within}" if limit else "")


def _count_restarts_since(restarts: Restarts, counts_as: RestartBudget, at: float) -> int:
    return sum(
        record.counts_as == counts_as and parse_untrusted_timestamp(record.at) > at for record in restarts.history
    )


def _compute_backoff_seconds(restarts: Restarts, failure: Failure) -> float:
    """Return the wait before the next attempt, which grows with each consecutive attempt that failed early."""
    short_attempts, ended_at = 0, failure.at
    for record in reversed(_find_last_attempts(restarts.history)):
        # This attempt did not fail, so the failures before it don't count.
        if record.reason in PLANNED_RESTARTS:
            break
        # Without `seconds_lost`, the next attempt never had all its ranks running.
        lost = record.seconds_lost
        if lost is not None and ended_at - (parse_untrusted_timestamp(record.at) + lost) >= SHORT_ATTEMPT_SECONDS:
            break
        short_attempts, ended_at = short_attempts + 1, parse_untrusted_timestamp(record.at)
    return _compute_exponential_backoff(short_attempts)


def _compute_exponential_backoff(short_attempts: int) -> float:
    if short_attempts == 0:
        return 0.0
    return min(MAX_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2.0 ** min(short_attempts - 1, 16))
