"""One setting that muster adds to a pod or a process."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Explanation:
    """`source` is a field of the resource, `muster` for its defaults, or `agent` for values known only at run time."""

    group: str
    setting: str
    value: str
    source: str
    why: str
