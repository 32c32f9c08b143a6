"""The types of a rule about a resource."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from muster.api.document import Path
from muster.api.spec.job import Spec


@dataclass(frozen=True)
class Breach:
    """Where a spec breaks a rule, below `spec`, and the value there."""

    path: Path
    finding: str


@dataclass(frozen=True)
class Rule:
    """`sentence` says what is allowed and what to do. `cel`, if set, validates each value at `places` of the schema."""

    places: tuple[str, ...]
    why: str
    sentence: str
    breaches: Callable[[Spec], Iterable[Breach]]
    cel: str | None = None
