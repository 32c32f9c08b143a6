"""What is worth an event of the way from one status to the next: what `kubectl describe` tells beside the status."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from muster.api.amounts import amount
from muster.api.status import RESUMED, SUSPENDED, Condition, NetworkCheck, Status
from muster.plan.gang_release import GANG_RELEASED
from muster.status.conditions import NODES_NOT_PLACED, REMARKS
from muster.status.sentences import fit


@dataclass(frozen=True)
class Note:
    """An event: `reason` is one CamelCase word, `message` a line that is short enough for Kubernetes.

    `since` is when it came to be (RFC 3339), as the status tells it: the same in every later status. `occasion` tells
    it from others of its reason (None: its message does): what is told twice of one occasion is one event.
    """

    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    since: str
    occasion: str | None = None


def notes(previous: Status, status: Status) -> tuple[Note, ...]:
    """The events of the way from `previous` to `status`, each thing told once."""
    steps, result = tuple(_steps(previous, status)), (*_slow_network(previous, status), *_remarks(previous, status))
    # Why it had stalled is why it failed, or was refused.
    if any(note.type == "Warning" for note in steps):
        return (*steps, *result)
    return (*steps, *result, *_problems(previous, status))


def steps_so_far(status: Status) -> tuple[Note, ...]:
    """What was told of the job's way, or should have been: who wrote the status may have died before it told."""
    return (*_steps(Status(), status), *_slow_network(Status(), status), *_remarks(Status(), status))


def _steps(previous: Status, status: Status) -> Iterator[Note]:
    suspension = _condition(status, SUSPENDED)
    if _is_resumed(status) and not _is_resumed(previous):
        why = "spec.suspend is false: the job is started anew"
        yield Note("Normal", "Resumed", why, suspension.last_transition_time)
    releases = _releases(status)
    if releases > _releases(previous) and status.placement is not None:
        why = _condition(status, "Scheduled").message
        yield Note("Warning", GANG_RELEASED, fit(why), status.placement.released_at, occasion=str(releases))
    if status.attempt > previous.attempt and status.start_time is not None:
        # What one training job followed may be told in fuller words later.
        occasion = None if status.backend is None else str(status.attempt)
        yield Note("Normal", "Started", _start(status), status.start_time, occasion)
    if _turned(previous, status, SUSPENDED):
        yield Note("Normal", "Suspended", fit(status.message), suspension.last_transition_time)
    if _turned(previous, status, "Complete"):
        yield Note("Normal", "Completed", fit(status.message), _condition(status, "Complete").last_transition_time)
    if _turned(previous, status, "Failed"):
        yield Note("Warning", "Failed", fit(status.message), _condition(status, "Failed").last_transition_time)
    elif _tells_more(previous, status, "Accepted", "False"):
        accepted = _condition(status, "Accepted")
        yield Note("Warning", "Refused", fit(accepted.message), accepted.last_transition_time)


def _start(status: Status) -> str:
    world = status.ranks.world if status.ranks is not None else 0
    record = None if status.backend is None else status.backend.sagemaker
    if record is None:
        nodes = "The node is" if status.nodes is not None and status.nodes.desired == 1 else "All nodes are"
        ranks = f"{amount(world, 'rank')} {'is' if world == 1 else 'are'} started"
        return f"{nodes} ready: {ranks} (attempt {status.attempt})"
    made = f"Training job {record.training_job_name} is created for {amount(world, 'rank')}"
    last = record.earlier[-1] if record.earlier else None
    after = "" if last is None else f", after {last.training_job_name} ({last.reason}): {last.message}"
    return fit(made + after)


def _slow_network(previous: Status, status: Status) -> Iterator[Note]:
    """What the network check of this start found, as an event."""
    check, since = _check(status), status.start_time
    if check is None or since is None or check.slow_count == 0:
        return
    if previous.attempt != status.attempt or _check(previous) != check:
        yield Note("Warning", "SlowNetwork", fit(check.message), since, occasion=str(status.attempt))


def _remarks(previous: Status, status: Status) -> Iterator[Note]:
    """Fields of the spec that have no effect: once, and again when they change."""
    accepted = _condition(status, "Accepted")
    if accepted.reason == REMARKS and _tells_more(previous, status, "Accepted", "True"):
        yield Note("Warning", REMARKS, fit(accepted.message), accepted.last_transition_time)


def _check(status: Status) -> NetworkCheck | None:
    return None if status.network is None else status.network.check


def _releases(status: Status) -> int:
    return 0 if status.placement is None else status.placement.releases


def _is_resumed(status: Status) -> bool:
    condition = _condition(status, SUSPENDED)
    return (condition.status, condition.reason) == ("False", RESUMED)


def _problems(previous: Status, status: Status) -> Iterator[Note]:
    """What keeps nodes from work. A problem of the placement can be one that a person has to solve: it is told once."""
    fields = {
        entry.reason: entry
        for kind, problem in (("Scheduled", "False"), ("Stalled", "True"))
        if (entry := _condition(status, kind)).status == problem and entry.reason not in _NO_PROBLEM
    }
    before = {_condition(previous, kind).reason for kind in ("Scheduled", "Stalled")}
    # A container that fails again and again is one problem of this start; the status has the newest word on it.
    began = _condition(status, SUSPENDED).last_transition_time
    for reason, entry in fields.items():
        if reason not in before:
            yield Note("Warning", reason, fit(entry.message), began, occasion="")


_NO_PROBLEM = frozenset((NODES_NOT_PLACED, GANG_RELEASED, SUSPENDED))


def _turned(previous: Status, status: Status, kind: str) -> bool:
    """Whether the condition has become true."""
    return _condition(status, kind).status == "True" != _condition(previous, kind).status


def _tells_more(previous: Status, status: Status, kind: str, to: str) -> bool:
    before, after = _condition(previous, kind), _condition(status, kind)
    return after.status == to and (before.status, before.message) != (to, after.message)


def _condition(status: Status, kind: str) -> Condition:
    absent = Condition(type=kind, status="Unknown", reason="", last_transition_time="")
    return next((entry for entry in status.conditions if entry.type == kind), absent)
