"""One setting that muster adds to a pod or a process."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Explanation:
    """A setting. `source` is a field of the resource, `muster` for a default, or `agent` for run-time values."""

    group: str
    setting: str
    value: str
    source: str
    reason: str
