"""Whether a job may be stored: what the operator would refuse later, said before the API server stores it. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from muster.api.changes import CHANGE_SENTENCE, CHANGEABLE, OVER_SENTENCE, changed_fields
from muster.api.document import JSON, Document
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.spec.job import Job
from muster.api.status.reader import status_of
from muster.api.status.status import Status
from muster.api.validation.all_rules import LASTING_RULES, RULES
from muster.api.validation.validate import validate


@dataclass(frozen=True)
class JobChange:
    """The resource as it is to be stored, and as it is stored: None for a new one."""

    wanted: Mapping[str, JSON]
    stored: Mapping[str, JSON] | None


def objections(change: JobChange, accept: Callable[[Job, Status], None]) -> tuple[FieldProblem, ...]:
    """Everything that speaks against the change; nothing for one that leaves the spec as it is.

    `accept` raises `InvalidResource` for a job that this operator's configuration doesn't allow or know.
    """
    stored, wanted = change.stored, change.wanted
    status = Status() if stored is None else status_of(stored)
    if stored is not None:
        # To remove a finalizer, or to add a label, changes nothing of what runs.
        if stored.get("spec") == wanted.get("spec"):
            return ()
        forbidden = _forbidden(_spec(stored), _spec(wanted), status)
        if forbidden:
            return forbidden
    try:
        job = validate(Document(dict(wanted)), LASTING_RULES if status.was_started else RULES)
        accept(job, status)
    except InvalidResource as invalid:
        return invalid.problems
    return ()


def _forbidden(before: Mapping[str, JSON], now: Mapping[str, JSON], status: Status) -> tuple[FieldProblem, ...]:
    """Changes that the CRD's rules refuse: the CRD of a cluster may be older than its operator."""
    changed = changed_fields(before, now)
    if status.final_condition is not None:
        return tuple(FieldProblem(f"spec.{name}", OVER_SENTENCE) for name in changed)
    if before.get("suspend") is True or _is_refused(status):
        return ()
    return tuple(FieldProblem(f"spec.{name}", CHANGE_SENTENCE) for name in changed if name not in CHANGEABLE)


def _is_refused(status: Status) -> bool:
    return any(entry.type == "Accepted" and entry.status == "False" for entry in status.conditions)


def _spec(resource: Mapping[str, JSON]) -> Mapping[str, JSON]:
    spec = resource.get("spec")
    return spec if isinstance(spec, dict) else {}
