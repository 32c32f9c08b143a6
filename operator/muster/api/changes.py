"""What of a job may change once it was accepted, in CEL and for the webhook: both are shown both specs.

The operator has the new one only. It knows of a change after the end by the generation (`status.after_the_end`).
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
"""Fields of the spec that mean something to ranks that already run."""

CHANGE_SENTENCE = (
    f"while a job isn't suspended, only {', '.join(CHANGEABLE[:-1])} and {CHANGEABLE[-1]} of its spec may change:"
    " set spec.suspend to true first, or give the changed job another name"
)

OVER_SENTENCE = "the job is over, and its spec stays the one that ran: delete the job, or use another name"

_CONDITIONS = "has(oldSelf.status) && has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(condition, "

_IS_OVER = f"({_CONDITIONS}(condition.type == 'Complete' || condition.type == 'Failed') && condition.status == 'True'))"

_IS_OPEN = f"oldSelf.spec.suspend || ({_CONDITIONS}condition.type == 'Accepted' && condition.status == 'False'))"


def over_rule(spec: Mapping[str, JSON]) -> str:
    """The rule of the resource's root about a job that is over, from the spec's schema."""
    return f"!{_IS_OVER} || ({_are_kept(spec, ())})"


def change_rule(spec: Mapping[str, JSON]) -> str:
    """The rule of the resource's root about a job that isn't over, from the spec's schema."""
    return f"{_IS_OVER} || {_IS_OPEN} || ({_are_kept(spec, CHANGEABLE)})"


def changed_fields(before: Mapping[str, JSON], now: Mapping[str, JSON]) -> tuple[str, ...]:
    """The fields in which two specs differ, as CEL compares them: an empty list is as good as none."""
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
    # CEL's optionals would say it in half the words, but the API server takes their cost for endless
    if schema.get("type") == "array":  # an empty list is as good as none
        return f"(has({now}) && {now} != [] ? has({before}) && {now} == {before} : !has({before}) || {before} == [])"
    return f"(has({now}) ? has({before}) && {now} == {before} : !has({before}))"
