"""What is worth an event of the way from one status to the next: what `kubectl describe` tells beside the status."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from muster.api.status import Condition, Status
from muster.plan.suspension import SUSPENDED
from muster.status.sentences import fit


@dataclass(frozen=True)
class Note:
    """An event: `reason` is one CamelCase word, `message` a line that is short enough for Kubernetes."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


def notes(previous: Status, status: Status) -> tuple[Note, ...]:
    """The events of the way from `previous` to `status`, each thing told once."""
    return tuple(_notes(previous, status))


def _notes(previous: Status, status: Status) -> Iterator[Note]:
    if _turned(previous, status, SUSPENDED, "False"):
        yield Note("Normal", "Resumed", "spec.suspend is false: the job is started anew")
    if status.incarnation > previous.incarnation:
        world = status.ranks.world if status.ranks is not None else 0
        yield Note(
            "Normal", "Started", f"All nodes are ready: {world} ranks are started (incarnation {status.incarnation})"
        )
    if _turned(previous, status, SUSPENDED, "True"):
        yield Note("Normal", "Suspended", fit(status.message))
    if _turned(previous, status, "Complete", "True"):
        yield Note("Normal", "Completed", fit(status.message))
    if _turned(previous, status, "Failed", "True"):
        yield Note("Warning", "Failed", fit(status.message))
        # Why it had stalled is why it failed.
        return
    if _tells_more(previous, status, "Accepted", "False"):
        yield Note("Warning", "Refused", fit(_condition(status, "Accepted").message))
        return
    yield from _troubles(previous, status)


def _troubles(previous: Status, status: Status) -> Iterator[Note]:
    """What keeps nodes from work. A trouble of the placement can be one that a person has to solve: it is told once."""
    told = {
        entry.reason: entry
        for kind, trouble in (("Scheduled", "False"), ("Stalled", "True"))
        if (entry := _condition(status, kind)).status == trouble and entry.reason not in _NO_TROUBLE
    }
    before = {_condition(previous, kind).reason for kind in ("Scheduled", "Stalled")}
    for reason, entry in told.items():
        if reason not in before:
            yield Note("Warning", reason, fit(entry.message))


_NO_TROUBLE = frozenset(("NodesNotPlaced", SUSPENDED))


def _turned(previous: Status, status: Status, kind: str, to: str) -> bool:
    """Whether the condition has become `to`; one that is there for the first time has not become False."""
    before, after = _condition(previous, kind).status, _condition(status, kind).status
    return after == to != before and (to == "True" or before == "True")


def _tells_more(previous: Status, status: Status, kind: str, to: str) -> bool:
    before, after = _condition(previous, kind), _condition(status, kind)
    return after.status == to and (before.status, before.message) != (to, after.message)


def _condition(status: Status, kind: str) -> Condition:
    absent = Condition(type=kind, status="Unknown", reason="", last_transition_time="")
    return next((entry for entry in status.conditions if entry.type == kind), absent)
