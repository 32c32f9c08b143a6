"""Which fields of an accepted job's spec may change: as CEL rules, and for the webhook.

CEL and the webhook see the old and the new spec. The operator sees only the new one: it recognizes a change after the
job's end by metadata.generation (`status.after_the_end`).
"""

from collections.abc import Mapping, Sequence

from muster.api.document import JSON

CHANGEABLE = (
    "suspend",
    "startupTimeoutSeconds",
    "activeDeadlineSeconds",
    "cleanPodPolicy",
    "ttlSecondsAfterFinished",
    "failurePolicy",
)
"""Fields of the spec that have an effect on ranks that already run."""

CHANGE_SENTENCE = (
    f"while a job isn't suspended, only {', '.join(CHANGEABLE[:-1])} and {CHANGEABLE[-1]} of its spec may change:"
    " set spec.suspend to true first, or give the changed job another name"
)

OVER_SENTENCE = "the job has ended, and its spec can no longer change: delete the job, or use another name"

_CONDITIONS = "has(oldSelf.status) && has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(condition, "

_IS_OVER = f"({_CONDITIONS}(condition.type == 'Complete' || condition.type == 'Failed') && condition.status == 'True'))"

_IS_OPEN = f"oldSelf.spec.suspend || ({_CONDITIONS}condition.type == 'Accepted' && condition.status == 'False'))"


def over_rule(spec: Mapping[str, JSON]) -> str:
    """Return the CEL rule at the resource's root for a job that has ended, from the spec's schema."""
    return f"!{_IS_OVER} || ({_are_kept(spec, ())})"


def change_rule(spec: Mapping[str, JSON]) -> str:
    """Return the CEL rule at the resource's root for a job that has not ended, from the spec's schema."""
    return f"{_IS_OVER} || {_IS_OPEN} || ({_are_kept(spec, CHANGEABLE)})"


def changed_fields(before: Mapping[str, JSON], now: Mapping[str, JSON]) -> tuple[str, ...]:
    """The fields in which two specs differ, as CEL compares them: an empty list equals a missing field."""
    names = dict.fromkeys((*before, *now))
    return tuple(name for name in names if _or_none(before.get(name)) != _or_none(now.get(name)))


def _or_none(value: JSON) -> JSON:
    return None if value == [] else value


def _are_kept(spec: Mapping[str, JSON], changeable: Sequence[str]) -> str:
    fields = spec["properties"]
    return " && ".join(
        _is_kept(name, schema, spec.get("required"))
        for name, schema in (fields.items() if isinstance(fields, dict) else ())
        if name not in changeable and isinstance(schema, dict)
    )


def _is_kept(name: str, schema: Mapping[str, JSON], required: JSON) -> str:
    now, before = f"self.spec.{name}", f"oldSelf.spec.{name}"
    if "default" in schema or (isinstance(required, list) and name in required):
        return f"{now} == {before}"
    # CEL's optional types would make this half as long, but the API server estimates their cost as unbounded
    if schema.get("type") == "array":  # an empty list equals a missing field
        return f"(has({now}) && {now} != [] ? has({before}) && {now} == {before} : !has({before}) || {before} == [])"
    return f"(has({now}) ? has({before}) && {now} == {before} : !has({before}))"
