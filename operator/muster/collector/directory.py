"""Who a pod is: the backend that made it knows."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Member:
    """A pod's place in its job."""

    job_uid: str
    node: int
    replacement: int


class Directory(Protocol):
    """The pods that muster made."""

    def find(self, pod_uid: str) -> Member | None:
        """The pod's place; None when it isn't known (yet, or any more)."""
        ...
