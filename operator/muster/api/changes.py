"""What of a job may change once it was accepted, in CEL: the API server has both specs, muster has the new one only."""

from collections.abc import Mapping

from muster.api.document import JSON

CHANGEABLE = ("suspend", "startupTimeoutSeconds", "activeDeadlineSeconds", "cleanup", "recovery")
"""Fields of the spec that mean something to ranks that already run."""

CHANGE_SENTENCE = (
    f"while a job isn't suspended, only {', '.join(CHANGEABLE[:-1])} and {CHANGEABLE[-1]} of its spec may change:"
    " set spec.suspend to true first, or give the changed job another name"
)

_IS_OPEN = (
    "oldSelf.spec.suspend"
    " || (has(oldSelf.status) && has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(condition,"
    " condition.type == 'Accepted' && condition.status == 'False'))"
)


def change_rule(spec: Mapping[str, JSON]) -> str:
    """The rule of the resource's root, from the spec's schema."""
    fields = spec["properties"]
    kept = [
        _is_kept(name, schema, spec.get("required"))
        for name, schema in (fields.items() if isinstance(fields, dict) else ())
        if name not in CHANGEABLE and isinstance(schema, dict)
    ]
    return f"{_IS_OPEN} || ({' && '.join(kept)})"


def _is_kept(name: str, schema: Mapping[str, JSON], required: JSON) -> str:
    now, before = f"self.spec.{name}", f"oldSelf.spec.{name}"
    if "default" in schema or (isinstance(required, list) and name in required):
        return f"{now} == {before}"
    # CEL's optionals would say it in half the words, but the API server takes their cost for endless
    if schema.get("type") == "array":  # an empty list is as good as none
        return f"(has({now}) && {now} != [] ? has({before}) && {now} == {before} : !has({before}) || {before} == [])"
    return f"(has({now}) ? has({before}) && {now} == {before} : !has({before}))"
