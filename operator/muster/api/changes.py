"""The fields of an accepted job's spec that may change: CEL rules for the CRD, and a comparison for the webhook.

CEL and the webhook get the old and the new spec. The operator gets only the new spec, so it uses
metadata.generation to detect a change after the job's end.
"""

import json
from collections.abc import Mapping, Sequence

from muster.api.document import JSON

MUTABLE_FIELDS = (
    "suspend",
    "startupTimeoutSeconds",
    "activeDeadlineSeconds",
    "cleanPodPolicy",
    "ttlSecondsAfterFinished",
    "failurePolicy",
    "totalSteps",
)
"""Fields of the spec that may change while the job's ranks run. A field within another one can't be in this list.

`render/kubernetes/spec_hash.py` leaves them out: pods of another value are not outdated.
"""

ELASTIC_MUTABLE_FIELD = "nodes"
"""A field that may also change while the ranks of an elastic job run."""

IMMUTABLE_MESSAGE = (
    f"while a job isn't suspended, only {', '.join(MUTABLE_FIELDS[:-1])} and {MUTABLE_FIELDS[-1]} of its spec, and "
    f"{ELASTIC_MUTABLE_FIELD} of an elastic job, may change: set spec.suspend to true first, or give the "
    "changed job another name"
)

ENDED_MESSAGE = "the job has ended, and its spec can no longer change: delete the job, or use another name"

_ANY_CONDITION_CEL = (
    "has(oldSelf.status) && has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(condition, "
)

_HAS_ENDED_CEL = (
    f"({_ANY_CONDITION_CEL}(condition.type == 'Complete' || condition.type == 'Failed') && condition.status == 'True'))"
)

_IS_MUTABLE_CEL = (
    f"oldSelf.spec.suspend || ({_ANY_CONDITION_CEL}condition.type == 'Accepted' && condition.status == 'False'))"
)


def build_change_rule(spec: Mapping[str, JSON]) -> str:
    """Return the CEL rule at the resource's root for changes of the spec, from the spec's schema.

    The API server evaluates it at each write of the status, too. For each look-up of a field of the spec, it copies the
    list of all its fields, and the rule has hundreds of look-ups. So the rule first compares the whole spec.
    """
    ended_rule, active_rule = _build_unchanged_rule(spec, ()), _build_unchanged_rule(spec, MUTABLE_FIELDS)
    return f"self.spec == oldSelf.spec || ({_HAS_ENDED_CEL} ? ({ended_rule}) : ({_IS_MUTABLE_CEL} || ({active_rule})))"


def build_change_message() -> str:
    """Return the CEL expression for the message of a change that `build_change_rule` forbids."""
    return f"{_HAS_ENDED_CEL} ? {json.dumps(ENDED_MESSAGE)} : {json.dumps(IMMUTABLE_MESSAGE)}"


def find_changed_fields(old_spec: Mapping[str, JSON], new_spec: Mapping[str, JSON]) -> tuple[str, ...]:
    """Return the fields in which two specs differ. As in the CEL rules, an empty list equals a missing field."""
    names = dict.fromkeys((*old_spec, *new_spec))
    return tuple(
        name for name in names if _convert_empty_list(old_spec.get(name)) != _convert_empty_list(new_spec.get(name))
    )


def _convert_empty_list(value: JSON) -> JSON:
    return None if value == [] else value


def _build_unchanged_rule(spec: Mapping[str, JSON], ignored_fields: Sequence[str]) -> str:
    fields = spec["properties"]
    return " && ".join(
        _allow_elastic_change(name, _build_unchanged_field_rule(name, schema, spec.get("required")), ignored_fields)
        for name, schema in (fields.items() if isinstance(fields, dict) else ())
        if name not in ignored_fields and isinstance(schema, dict)
    )


def list_mutable_fields(spec: Mapping[str, JSON]) -> tuple[str, ...]:
    """Return the fields that may change while the ranks of a job with this spec run."""
    return (*MUTABLE_FIELDS, ELASTIC_MUTABLE_FIELD) if spec.get("elastic") is not None else MUTABLE_FIELDS


def _allow_elastic_change(name: str, unchanged_rule: str, ignored_fields: Sequence[str]) -> str:
    # Without ignored fields, this is the rule for an ended job, whose spec can't change.
    if name != ELASTIC_MUTABLE_FIELD or not ignored_fields:
        return unchanged_rule
    return f"(has(oldSelf.spec.elastic) || {unchanged_rule})"


def _build_unchanged_field_rule(name: str, schema: Mapping[str, JSON], required: JSON) -> str:
    now, before = f"self.spec.{name}", f"oldSelf.spec.{name}"
    if "default" in schema or (isinstance(required, list) and name in required):
        return f"{now} == {before}"
    # CEL's optional types would halve this rule, but the API server estimates their cost as unbounded.
    if schema.get("type") == "array":  # An empty list equals a missing field.
        return f"(has({now}) && {now} != [] ? has({before}) && {now} == {before} : !has({before}) || {before} == [])"
    return f"(has({now}) ? has({before}) && {now} == {before} : !has({before}))"
