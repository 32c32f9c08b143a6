"""Validate a job at admission, with the rules that the operator applies later."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from muster.api.changes import ENDED_MESSAGE, IMMUTABLE_MESSAGE, find_changed_fields, list_mutable_fields
from muster.api.document import JSON, Document
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.spec.job import Job
from muster.api.status.reader import read_status
from muster.api.status.status import Status
from muster.api.validation.all_rules import LASTING_RULES, RULES
from muster.api.validation.validate import validate


@dataclass(frozen=True)
class JobChange:
    """The resource before and after the change; `stored` is None for a new resource."""

    wanted: Mapping[str, JSON]
    stored: Mapping[str, JSON] | None


def validate_change(change: JobChange, accept: Callable[[Job, Status], None]) -> tuple[FieldProblem, ...]:
    """Return every reason to reject the change; an unchanged spec is always allowed.

    `accept` raises `InvalidResource` for a job that this operator's configuration doesn't allow or know.
    """
    stored, wanted = change.stored, change.wanted
    status = Status() if stored is None else read_status(stored)
    if stored is not None:
        # Changing only metadata, such as a finalizer or a label, never affects the running job.
        if stored.get("spec") == wanted.get("spec"):
            return ()
        forbidden = _find_forbidden_field_changes(_spec(stored), _spec(wanted), status)
        if forbidden:
            return forbidden
    try:
        job = validate(Document(dict(wanted)), LASTING_RULES if status.was_ever_started else RULES)
        accept(job, status)
    except InvalidResource as invalid:
        return invalid.problems
    return ()


def _find_forbidden_field_changes(
    before: Mapping[str, JSON], now: Mapping[str, JSON], status: Status
) -> tuple[FieldProblem, ...]:
    """Repeat the CRD's own transition rules, because the cluster may have an older CRD than its operator."""
    changed = find_changed_fields(before, now)
    if status.final_condition is not None:
        return tuple(FieldProblem(f"spec.{name}", ENDED_MESSAGE) for name in changed)
    if before.get("suspend") is True or _is_rejected(status):
        return ()
    allowed = list_mutable_fields(before)
    return tuple(FieldProblem(f"spec.{name}", IMMUTABLE_MESSAGE) for name in changed if name not in allowed)


def _is_rejected(status: Status) -> bool:
    return any(entry.type == "Accepted" and entry.status == "False" for entry in status.conditions)


def _spec(resource: Mapping[str, JSON]) -> Mapping[str, JSON]:
    spec = resource.get("spec")
    return spec if isinstance(spec, dict) else {}
