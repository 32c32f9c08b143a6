"""One setting that muster adds to what it starts."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Explanation:
    """`source` is a field of the resource, `muster` for its own defaults, or `agent` for what is known at run time."""

    group: str
    setting: str
    value: str
    source: str
    why: str
