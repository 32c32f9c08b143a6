"""The Kubernetes events about a change of the status; `kubectl describe` shows them below the status."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from muster.api.plurals import pluralize
from muster.api.spec.limits import MAX_NODES_WITH_SPARES
from muster.api.status.network import NetworkCheck
from muster.api.status.status import RESTARTING, RESUMED, SUSPENDED, Condition, Status
from muster.core.failure.ends import STRAGGLER
from muster.core.gang_release import GANG_RELEASED
from muster.core.membership.member_text import (
    describe_replaced_members,
    find_replaced_members,
    parse_members,
)
from muster.core.restarts import PLANNED_RESTARTS, RESIZED
from muster.core.status.conditions import NODES_NOT_PLACED, VALID_WITH_REMARKS
from muster.core.status.truncate import truncate_message

SPARE_USED = "SpareUsed"


@dataclass(frozen=True)
class JobEvent:
    """An event: `reason` is a CamelCase word, `message` a line that is short enough for Kubernetes.

    `since` is the event's time in the status (RFC 3339), which later statuses keep. Kubernetes stores events with the
    same reason and `deduplication_key` as one event. If `deduplication_key` is None, their messages have to be equal,
    too.
    """

    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    since: str
    deduplication_key: str | None = None


def list_new_events(previous: Status, status: Status) -> tuple[JobEvent, ...]:
    """Return the events about the change from `previous` to `status`."""
    transitions = tuple(_list_transition_events(previous, status))
    warnings = (
        *_list_slow_network_events(previous, status),
        *_list_straggler_events(previous, status),
        *_list_warning_events(previous, status),
    )
    # Don't repeat the failure or refusal, which is also the reason of Stalled.
    if any(event.type == "Warning" for event in transitions):
        return (*transitions, *warnings)
    return (*transitions, *warnings, *_list_problem_events(previous, status))


def list_past_events(status: Status) -> tuple[JobEvent, ...]:
    """Return all events of the job so far, in case the operator ended after it wrote the status."""
    return (
        *_list_transition_events(Status(), status),
        *_list_slow_network_events(Status(), status),
        *_list_straggler_events(Status(), status),
        *_list_warning_events(Status(), status),
    )


def _list_transition_events(previous: Status, status: Status) -> Iterator[JobEvent]:
    suspension = _get_condition(status, SUSPENDED)
    if _is_resumed(status) and not _is_resumed(previous):
        text = "spec.suspend is false: the ranks start again"
        yield JobEvent("Normal", "Resumed", text, suspension.last_transition_time)
    releases = _count_releases(status)
    if releases > _count_releases(previous) and status.placement is not None:
        text, since = truncate_message(_get_condition(status, "Scheduled").message), status.placement.released_at
        yield JobEvent("Warning", GANG_RELEASED, text, since, deduplication_key=str(releases))
    last = status.last_restart
    if last is not None and _count_restarts(status) > _count_restarts(previous):
        text = truncate_message(f"{last.message}; attempt {status.attempt} follows")
        yield JobEvent("Normal" if last.reason in PLANNED_RESTARTS else "Warning", RESTARTING, text, last.at)
    if _get_last_started_attempt(status) > _get_last_started_attempt(previous) and status.start_time is not None:
        # The message about the previous training job may become more detailed later.
        deduplication_key = None if status.backend is None else str(status.attempt)
        since = status.start_time if last is None else last.at
        yield JobEvent("Normal", "Started", _describe_start(status), since, deduplication_key)
        yield from _list_spare_events(status, since)
        yield from _list_resize_events(status, since)
    if _has_become_true(previous, status, SUSPENDED):
        yield JobEvent("Normal", "Suspended", truncate_message(status.message), suspension.last_transition_time)
    if _has_become_true(previous, status, "Complete"):
        yield JobEvent(
            "Normal",
            "Completed",
            truncate_message(status.message),
            _get_condition(status, "Complete").last_transition_time,
        )
    if _has_become_true(previous, status, "Failed"):
        yield JobEvent(
            "Warning", "Failed", truncate_message(status.message), _get_condition(status, "Failed").last_transition_time
        )
    elif _has_changed_to(previous, status, "Accepted", "False"):
        accepted = _get_condition(status, "Accepted")
        yield JobEvent("Warning", "Refused", truncate_message(accepted.message), accepted.last_transition_time)


def _list_spare_events(status: Status, since: str) -> Iterator[JobEvent]:
    """Report which spares run the ranks of lost nodes in this attempt."""
    last = status.last_restart
    replaced = () if last is None else find_replaced_members(last.members, status.members)
    if status.spares is None or not replaced:
        return
    subject = "A spare takes the place of a node" if len(replaced) == 1 else "Spares take the place of nodes"
    text = f"{subject} in attempt {status.attempt}: {describe_replaced_members(replaced)}"
    yield JobEvent("Normal", SPARE_USED, text, since, deduplication_key=str(status.attempt))


def _list_resize_events(status: Status, since: str) -> Iterator[JobEvent]:
    """Report that an elastic job runs with another number of nodes."""
    last = status.last_restart
    if status.elastic is None or last is None:
        return
    before, after = (_count_members(text) for text in (last.members, status.members))
    if before and after and before != after:
        text = f"Attempt {status.attempt} has {pluralize(after, 'node')} instead of {before}"
        yield JobEvent("Normal", RESIZED, text, since, deduplication_key=str(status.attempt))


def _count_members(text: str | None) -> int:
    return len((None if text is None else parse_members(text, MAX_NODES_WITH_SPARES)) or ())


def _describe_start(status: Status) -> str:
    world = status.ranks.world if status.ranks is not None else 0
    record = None if status.backend is None else status.backend.sagemaker
    if record is None:
        nodes = "The node is" if status.nodes is not None and status.nodes.desired == 1 else "All nodes are"
        ranks = f"{pluralize(world, 'rank')} {'is' if world == 1 else 'are'} started"
        return f"{nodes} ready: {ranks} (attempt {status.attempt})"
    created = f"Training job {record.training_job_name} is created for {pluralize(world, 'rank')}"
    last = record.earlier[-1] if record.earlier else None
    after = "" if last is None else f", after {last.training_job_name} ({last.reason}): {last.message}"
    return truncate_message(created + after)


def _list_slow_network_events(previous: Status, status: Status) -> Iterator[JobEvent]:
    """Report slow nodes that the network check of this attempt has found."""
    check, since = _get_network_check(status), status.start_time
    if check is None or since is None or check.slow_count == 0:
        return
    if previous.attempt != status.attempt or _get_network_check(previous) != check:
        yield JobEvent(
            "Warning", "SlowNetwork", truncate_message(check.message), since, deduplication_key=str(status.attempt)
        )


def _list_straggler_events(previous: Status, status: Status) -> Iterator[JobEvent]:
    """Report stragglers once, and again when they are other ranks."""
    record, before = status.stragglers, previous.stragglers
    if record is not None and (before is None or (before.since, before.message) != (record.since, record.message)):
        yield JobEvent("Warning", STRAGGLER, truncate_message(record.message), record.since)


def _list_warning_events(previous: Status, status: Status) -> Iterator[JobEvent]:
    """Report fields of the spec without effect: once, and again when they change."""
    accepted = _get_condition(status, "Accepted")
    if accepted.reason == VALID_WITH_REMARKS and _has_changed_to(previous, status, "Accepted", "True"):
        yield JobEvent("Warning", VALID_WITH_REMARKS, truncate_message(accepted.message), accepted.last_transition_time)


def _get_network_check(status: Status) -> NetworkCheck | None:
    return None if status.network is None else status.network.check


def _count_restarts(status: Status) -> int:
    return 0 if status.restarts is None else status.restarts.total


def _get_last_started_attempt(status: Status) -> int:
    """Return the last attempt whose ranks muster has started."""
    return status.attempt - 1 if status.is_restarting else status.attempt


def _count_releases(status: Status) -> int:
    return 0 if status.placement is None else status.placement.releases


def _is_resumed(status: Status) -> bool:
    condition = _get_condition(status, SUSPENDED)
    return (condition.status, condition.reason) == ("False", RESUMED)


def _list_problem_events(previous: Status, status: Status) -> Iterator[JobEvent]:
    """Report each problem of nodes once."""
    current = {
        entry.reason: entry
        for condition_type, problem in (("Scheduled", "False"), ("Stalled", "True"))
        if (entry := _get_condition(status, condition_type)).status == problem and entry.reason not in _NORMAL_REASONS
    }
    before = {_get_condition(previous, condition_type).reason for condition_type in ("Scheduled", "Stalled")}
    # Report a repeated failure of a container only once; the status has its latest message.
    since = _get_condition(status, SUSPENDED).last_transition_time
    for reason, entry in current.items():
        if reason not in before:
            yield JobEvent("Warning", reason, truncate_message(entry.message), since, deduplication_key="")


_NORMAL_REASONS = frozenset((NODES_NOT_PLACED, GANG_RELEASED, SUSPENDED))


def _has_become_true(previous: Status, status: Status, condition_type: str) -> bool:
    """Whether the condition has become true."""
    return _get_condition(status, condition_type).status == "True" != _get_condition(previous, condition_type).status


def _has_changed_to(previous: Status, status: Status, condition_type: str, to: str) -> bool:
    before, after = _get_condition(previous, condition_type), _get_condition(status, condition_type)
    return after.status == to and (before.status, before.message) != (to, after.message)


def _get_condition(status: Status, condition_type: str) -> Condition:
    absent = Condition(type=condition_type, status="Unknown", reason="", last_transition_time="")
    return next((entry for entry in status.conditions if entry.type == condition_type), absent)
