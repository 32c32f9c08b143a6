"""The Kubernetes events for a change of the status, which `kubectl describe` shows besides the status."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from muster.api.plurals import pluralize
from muster.api.status.network import NetworkCheck
from muster.api.status.status import RESTARTING, RESUMED, SUSPENDED, Condition, Status
from muster.core.gang_release import GANG_RELEASED
from muster.core.status.conditions import NODES_NOT_PLACED, REMARKS
from muster.core.status.fit import fit


@dataclass(frozen=True)
class JobEvent:
    """An event: `reason` is one CamelCase word, `message` a line that is short enough for Kubernetes.

    `since` is its time (RFC 3339) from the status, the same in every later status. `occasion` distinguishes it from
    other events with its reason (None: its message does): repeated reports of one occasion are one event.
    """

    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    since: str
    occasion: str | None = None


def new_events(previous: Status, status: Status) -> tuple[JobEvent, ...]:
    """The events for the change from `previous` to `status`, each only once."""
    steps, result = tuple(_steps(previous, status)), (*_slow_network(previous, status), *_remarks(previous, status))
    # Stalled has the same reason as the failure or refusal.
    if any(note.type == "Warning" for note in steps):
        return (*steps, *result)
    return (*steps, *result, *_problems(previous, status))


def past_events(status: Status) -> tuple[JobEvent, ...]:
    """Events of all the job's steps so far, in case the operator died between writing the status and the events."""
    return (*_steps(Status(), status), *_slow_network(Status(), status), *_remarks(Status(), status))


def _steps(previous: Status, status: Status) -> Iterator[JobEvent]:
    suspension = _condition(status, SUSPENDED)
    if _is_resumed(status) and not _is_resumed(previous):
        text = "spec.suspend is false: the job starts from the beginning"
        yield JobEvent("Normal", "Resumed", text, suspension.last_transition_time)
    releases = _releases(status)
    if releases > _releases(previous) and status.placement is not None:
        text = _condition(status, "Scheduled").message
        yield JobEvent("Warning", GANG_RELEASED, fit(text), status.placement.released_at, occasion=str(releases))
    last = status.last_restart
    if last is not None and _count_restarts(status) > _count_restarts(previous):
        yield JobEvent("Warning", RESTARTING, fit(f"{last.message}; attempt {status.attempt} follows"), last.at)
    if _last_started(status) > _last_started(previous) and status.start_time is not None:
        # The message about a training job's predecessor may become more detailed later.
        occasion = None if status.backend is None else str(status.attempt)
        since = status.start_time if last is None else last.at
        yield JobEvent("Normal", "Started", _start_message(status), since, occasion)
    if _became_true(previous, status, SUSPENDED):
        yield JobEvent("Normal", "Suspended", fit(status.message), suspension.last_transition_time)
    if _became_true(previous, status, "Complete"):
        yield JobEvent("Normal", "Completed", fit(status.message), _condition(status, "Complete").last_transition_time)
    if _became_true(previous, status, "Failed"):
        yield JobEvent("Warning", "Failed", fit(status.message), _condition(status, "Failed").last_transition_time)
    elif _has_changed_to(previous, status, "Accepted", "False"):
        accepted = _condition(status, "Accepted")
        yield JobEvent("Warning", "Refused", fit(accepted.message), accepted.last_transition_time)


def _start_message(status: Status) -> str:
    world = status.ranks.world if status.ranks is not None else 0
    record = None if status.backend is None else status.backend.sagemaker
    if record is None:
        nodes = "The node is" if status.nodes is not None and status.nodes.desired == 1 else "All nodes are"
        ranks = f"{pluralize(world, 'rank')} {'is' if world == 1 else 'are'} started"
        return f"{nodes} ready: {ranks} (attempt {status.attempt})"
    created = f"Training job {record.training_job_name} is created for {pluralize(world, 'rank')}"
    last = record.earlier[-1] if record.earlier else None
    after = "" if last is None else f", after {last.training_job_name} ({last.reason}): {last.message}"
    return fit(created + after)


def _slow_network(previous: Status, status: Status) -> Iterator[JobEvent]:
    """The network check's result for this attempt, as an event."""
    check, since = _check(status), status.start_time
    if check is None or since is None or check.slow_count == 0:
        return
    if previous.attempt != status.attempt or _check(previous) != check:
        yield JobEvent("Warning", "SlowNetwork", fit(check.message), since, occasion=str(status.attempt))


def _remarks(previous: Status, status: Status) -> Iterator[JobEvent]:
    """An event about fields of the spec without effect: once, and again when they change."""
    accepted = _condition(status, "Accepted")
    if accepted.reason == REMARKS and _has_changed_to(previous, status, "Accepted", "True"):
        yield JobEvent("Warning", REMARKS, fit(accepted.message), accepted.last_transition_time)


def _check(status: Status) -> NetworkCheck | None:
    return None if status.network is None else status.network.check


def _count_restarts(status: Status) -> int:
    return 0 if status.restarts is None else status.restarts.total


def _last_started(status: Status) -> int:
    """The last attempt whose ranks were started."""
    return status.attempt - 1 if status.is_restarting else status.attempt


def _releases(status: Status) -> int:
    return 0 if status.placement is None else status.placement.releases


def _is_resumed(status: Status) -> bool:
    condition = _condition(status, SUSPENDED)
    return (condition.status, condition.reason) == ("False", RESUMED)


def _problems(previous: Status, status: Status) -> Iterator[JobEvent]:
    """Problems that keep nodes from working. A user may have to solve a scheduling problem: report it once."""
    current = {
        entry.reason: entry
        for kind, problem in (("Scheduled", "False"), ("Stalled", "True"))
        if (entry := _condition(status, kind)).status == problem and entry.reason not in _NORMAL_REASONS
    }
    before = {_condition(previous, kind).reason for kind in ("Scheduled", "Stalled")}
    # Report a repeated failure of a container once per attempt; the status has its latest message.
    since = _condition(status, SUSPENDED).last_transition_time
    for reason, entry in current.items():
        if reason not in before:
            yield JobEvent("Warning", reason, fit(entry.message), since, occasion="")


_NORMAL_REASONS = frozenset((NODES_NOT_PLACED, GANG_RELEASED, SUSPENDED))


def _became_true(previous: Status, status: Status, kind: str) -> bool:
    """Whether the condition has become true."""
    return _condition(status, kind).status == "True" != _condition(previous, kind).status


def _has_changed_to(previous: Status, status: Status, kind: str, to: str) -> bool:
    before, after = _condition(previous, kind), _condition(status, kind)
    return after.status == to and (before.status, before.message) != (to, after.message)


def _condition(status: Status, kind: str) -> Condition:
    absent = Condition(type=kind, status="Unknown", reason="", last_transition_time="")
    return next((entry for entry in status.conditions if entry.type == kind), absent)
