"""Whether a failed attempt is followed by another one: the checks of `spec.failurePolicy`, in order. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from muster.api.plurals import pluralize
from muster.api.spec.failure_policy import FailurePolicy, FailureRule
from muster.api.spec.job import Job
from muster.api.status.restarts import NO_RESTARTS, Restarts
from muster.api.status.status import Status
from muster.api.timestamps import parse_or_past
from muster.core.attempts import last_restart
from muster.core.failure import rank_output
from muster.core.failure.ends import NODE_LOST, NODE_STOPPED, End, Subject
from muster.core.failure.failure import Failure
from muster.core.failure.problems import POD_DELETED, PREEMPTED
from muster_worker.contract.schema import EndReason

DISRUPTIONS = frozenset(
    (NODE_LOST, NODE_STOPPED, POD_DELETED, PREEMPTED, "Evicted", "NodeShutdown", "RefusedByKubelet")
)
"""Reasons for which the cluster is to blame, and neither the script nor its memory."""

SAME_FAILURE_LIMIT = 3
"""A failure that comes back at the same step so often in a row is in the script or its data."""

SHORT_ATTEMPT_SECONDS = 30.0
"""An attempt that fails sooner made no progress worth a checkpoint: the next one waits."""

FIRST_BACKOFF_SECONDS = 2.0
MAX_BACKOFF_SECONDS = 300.0

_USAGE_ERROR = 2
"""What argparse and Python itself exit with for a wrong command line."""

_CODE_ERRORS = ("SyntaxError:", "IndentationError:", "ImportError:", "ModuleNotFoundError:")
_NOT_STARTED = frozenset((EndReason.COMMAND_NOT_FOUND, EndReason.COMMAND_NOT_EXECUTABLE, EndReason.WORLD_SIZE_MISMATCH))


class Counted(StrEnum):
    """Which budget a restart counts for."""

    FAILURE = "Failure"
    DISRUPTION = "Disruption"
    NOTHING = "Nothing"


@dataclass(frozen=True)
class Restart:
    """Another attempt follows, `backoff_seconds` after the failure at the earliest. `allowance` is for people."""

    counts_as: Counted
    backoff_seconds: float
    allowance: str


@dataclass(frozen=True)
class NoRestart:
    """The job ends. `reason` is for people; "" for a job without a failure policy."""

    reason: str = ""


def failed_at(previous: Status, failure: Failure) -> float:
    """Return when the attempt failed (Unix seconds). A lost pod that was never seen may seem older than its attempt."""
    last = last_restart(previous)
    if last is not None:
        return max(failure.at, last.not_before)
    return failure.at if previous.start_time is None else max(failure.at, parse_or_past(previous.start_time))


def find_restart(job: Job, previous: Status, failure: Failure) -> Restart | NoRestart:
    """What the job's failure policy says about this failure of its current attempt."""
    policy = job.spec.failure_policy
    if policy is None:
        return NoRestart()
    restarts = previous.restarts or NO_RESTARTS
    failure = replace(failure, at=failed_at(previous, failure))
    index, rule = next(_matching(policy, failure.first), (0, None))
    if rule is None:
        return _by_default(policy, restarts, failure)
    if rule.action == "Fail":
        return NoRestart(f"failurePolicy.rules[{index}] says Fail")
    if rule.action == "Ignore":
        return Restart(Counted.NOTHING, _backoff(restarts, failure), f"failurePolicy.rules[{index}] says Ignore")
    return _within(policy, restarts, failure, Counted.FAILURE)


def _by_default(policy: FailurePolicy, restarts: Restarts, failure: Failure) -> Restart | NoRestart:
    """What becomes of a failure that no rule matches."""
    if failure.reason in DISRUPTIONS:
        return _within(policy, restarts, failure, Counted.DISRUPTION)
    # Starting the same script again gives the same error.
    if _is_error_of_script(failure.first):
        return NoRestart("a restart would give the same error" if policy.max_restarts else "")
    if _repeats(restarts, failure):
        return NoRestart(f"it failed so {SAME_FAILURE_LIMIT} times in a row at step {failure.first.step}")
    return _within(policy, restarts, failure, Counted.FAILURE)


def _matching(policy: FailurePolicy, end: End) -> Iterator[tuple[int, FailureRule]]:
    for index, rule in enumerate(policy.rules):
        if _matches(rule, end):
            yield index, rule


def _matches(rule: FailureRule, end: End) -> bool:
    wanted = (
        (rule.exit_codes, end.exit_code),
        (rule.signals, end.signal),
        (rule.reasons, end.why),
        (rule.ranks, end.rank),
        (rule.nodes, end.node),
    )
    return all(value in values for values, value in wanted if values)


def _is_error_of_script(end: End) -> bool:
    # An agent that can't work says why: its image, its network or its folders are wrong.
    if end.subject is Subject.NODE or end.reason in _NOT_STARTED:
        return True
    if end.step:
        return False
    line = rank_output.error_line(end.lines)
    return end.exit_code == _USAGE_ERROR or any(error in line for error in _CODE_ERRORS)


def _repeats(restarts: Restarts, failure: Failure) -> bool:
    """Whether the last attempts failed like this one, at the same step."""
    first, last = failure.first, restarts.history[1 - SAME_FAILURE_LIMIT :]
    if not first.step or len(last) < SAME_FAILURE_LIMIT - 1:
        return False
    return all((record.reason, record.step) == (failure.reason, first.step) for record in last)


def _within(policy: FailurePolicy, restarts: Restarts, failure: Failure, counts_as: Counted) -> Restart | NoRestart:
    name, limit, total = (
        ("maxRestarts", policy.max_restarts, restarts.failures)
        if counts_as is Counted.FAILURE
        else ("maxDisruptions", policy.max_disruptions, restarts.disruptions)
    )
    window = policy.window_seconds
    used = total if window is None else _used_since(restarts, counts_as, failure.at - window)
    if used < limit:
        return Restart(counts_as, _backoff(restarts, failure), f"{used + 1} of {limit}")
    within = "" if window is None else f" within {pluralize(window, 'second')}"
    return NoRestart(f"failurePolicy.{name} ({limit}) is used up{within}" if limit else "")


def _used_since(restarts: Restarts, counts_as: Counted, at: float) -> int:
    return sum(record.counts_as == counts_as and parse_or_past(record.at) > at for record in restarts.history)


def _backoff(restarts: Restarts, failure: Failure) -> float:
    """Return a longer time after each attempt in a row that failed soon after its start; 0 after the first failure."""
    short, ended_at = 0, failure.at
    for record in reversed(restarts.history):
        # Without `seconds_lost` the attempt after this failure never ran as a whole.
        lost = record.seconds_lost
        if lost is not None and ended_at - (parse_or_past(record.at) + lost) >= SHORT_ATTEMPT_SECONDS:
            break
        short, ended_at = short + 1, parse_or_past(record.at)
    return _backoff_of(short)


def _backoff_of(short: int) -> float:
    if short == 0:
        return 0.0
    return min(MAX_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2.0 ** min(short - 1, 16))
