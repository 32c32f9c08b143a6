"""The types of validation rules."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from muster.api.document import FieldPath
from muster.api.spec.job import Spec


@dataclass(frozen=True)
class Violation:
    """A violation of a rule: the field's path below `spec`, and a description of the value found there."""

    path: FieldPath
    finding: str


@dataclass(frozen=True)
class Rule:
    """A rule about a spec. `message` has the allowed values and the remedy. `rationale` is why the rule exists.

    `cel` is the same rule in CEL, for the fields at `schema_paths`; None if CEL can't express it.
    """

    schema_paths: tuple[str, ...]
    rationale: str
    message: str
    find_violations: Callable[[Spec], Iterable[Violation]]
    cel: str | None = None
