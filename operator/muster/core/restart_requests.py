"""Restarts that a user requests with an annotation. They need no failure and no failure policy."""

from dataclasses import replace

from muster.api.status.status import Status
from muster.api.timestamps import parse_untrusted_timestamp
from muster.core.facts import JobFacts
from muster.core.restarts import LastRestart, Restart, RestartBudget, read_last_restart

MIN_RESTART_INTERVAL_SECONDS = 1.0
"""The minimum time between the starts of two attempts if users request many restarts.

Each restart takes some writes of the status, and commands to all nodes.
"""


def find_requested_restart(previous: Status, facts: JobFacts, now: float) -> Restart | None:
    """Return the restart of the running attempt that a user has requested; None without a new request."""
    request = previous.restart_request
    if request is not None and request.stopping_since is not None:
        restart = _make_restart(previous, parse_untrusted_timestamp(request.stopping_since), now)
        return replace(restart, resize_reason=request.resize_reason)
    # A restart would not run the code that the user requested, so let the ranks run.
    if facts.requested_source is not None and facts.requested_source.problem:
        return None
    # The next start handles all earlier requests. If a user has cleared the status of a running job, the last handled
    # request is unknown, so handle none.
    return _make_restart(previous, now, now) if previous.was_started and is_new_request(previous, facts) else None


def make_resize(previous: Status, why: str, now: float) -> Restart:
    """Return the restart of the running attempt with another number of nodes."""
    return replace(_make_restart(previous, now, now), resize_reason=why)


def skip_backoff(last: LastRestart | None, previous: Status, facts: JobFacts, now: float) -> LastRestart | None:
    """Return the restart `last`, without its backoff if a user has requested a restart meanwhile."""
    if last is None or not previous.is_restarting or not is_new_request(previous, facts):
        return last
    failed_at = 0.0 if previous.last_restart is None else parse_untrusted_timestamp(previous.last_restart.at)
    return replace(last, not_before=min(last.not_before, max(now, failed_at + MIN_RESTART_INTERVAL_SECONDS)))


def is_new_request(previous: Status, facts: JobFacts) -> bool:
    """Whether muster has not handled the request yet."""
    value, handled_request = facts.restart_request, previous.restart_request
    return value is not None and (handled_request is None or handled_request.value != value)


def _make_restart(previous: Status, at: float, now: float) -> Restart:
    last = read_last_restart(previous)
    earliest = now if last is None else last.not_before + MIN_RESTART_INTERVAL_SECONDS
    backoff_seconds = min(MIN_RESTART_INTERVAL_SECONDS, max(0.0, earliest - now))
    return Restart(RestartBudget.NOTHING, at, backoff_seconds, "requested by a user")
