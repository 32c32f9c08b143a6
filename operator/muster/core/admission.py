"""Validate a job at admission, with the rules that the operator applies later."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from muster.api.changes import ENDED_MESSAGE, IMMUTABLE_MESSAGE, find_changed_fields, list_mutable_fields
from muster.api.document import JSON, Document
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.spec.job import Job
from muster.api.status.reader import read_status
from muster.api.status.status import Status
from muster.api.validation.all_rules import RULES, RULES_AFTER_START
from muster.api.validation.validate import validate


@dataclass(frozen=True)
class JobChange:
    """The two objects of an admission request; `old_object` is None for a new resource."""

    object: Mapping[str, JSON]
    old_object: Mapping[str, JSON] | None


def validate_change(change: JobChange, check_config: Callable[[Job, Status], None]) -> tuple[FieldProblem, ...]:
    """Return every reason to reject the change. An unchanged spec is always allowed.

    `check_config` raises `InvalidResource` for a job that the operator's configuration doesn't allow.
    """
    old_object = change.old_object
    status = Status() if old_object is None else read_status(old_object)
    if old_object is not None:
        # A change of metadata, such as a finalizer or a label, never affects the running job.
        if old_object.get("spec") == change.object.get("spec"):
            return ()
        problems = _find_forbidden_field_changes(_get_spec(old_object), _get_spec(change.object), status)
        if problems:
            return problems
    try:
        job = validate(Document(dict(change.object)), RULES_AFTER_START if status.was_ever_started else RULES)
        check_config(job, status)
    except InvalidResource as invalid:
        return invalid.problems
    return ()


def _find_forbidden_field_changes(
    old_spec: Mapping[str, JSON], new_spec: Mapping[str, JSON], status: Status
) -> tuple[FieldProblem, ...]:
    """Apply the CRD's transition rules again, because the cluster's CRD may be older than its operator."""
    changed = find_changed_fields(old_spec, new_spec)
    if status.final_condition is not None:
        return tuple(FieldProblem(f"spec.{name}", ENDED_MESSAGE) for name in changed)
    if old_spec.get("suspend") is True or _is_rejected(status):
        return ()
    allowed = list_mutable_fields(old_spec)
    return tuple(FieldProblem(f"spec.{name}", IMMUTABLE_MESSAGE) for name in changed if name not in allowed)


def _is_rejected(status: Status) -> bool:
    return any(entry.type == "Accepted" and entry.status == "False" for entry in status.conditions)


def _get_spec(resource: Mapping[str, JSON]) -> Mapping[str, JSON]:
    spec = resource.get("spec")
    return spec if isinstance(spec, dict) else {}
