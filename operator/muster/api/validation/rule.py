"""The types of a rule about a resource."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from muster.api.document import FieldPath
from muster.api.spec.job import Spec


@dataclass(frozen=True)
class Violation:
    """A violation of a rule: the path below `spec`, and a description of the value."""

    path: FieldPath
    finding: str


@dataclass(frozen=True)
class Rule:
    """`message` has the allowed values and the remedy. `cel` validates the values at `schema_paths`."""

    schema_paths: tuple[str, ...]
    why: str
    message: str
    find_violations: Callable[[Spec], Iterable[Violation]]
    cel: str | None = None
