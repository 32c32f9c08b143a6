"""Find the job of a pod; each backend implements this for its pods."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Member:
    """A pod's place in its job."""

    job_uid: str
    node: int
    replacement: int


class PodDirectory(Protocol):
    """The pods that muster created."""

    def find(self, pod_uid: str) -> Member | None:
        """Return the pod's place; None if it is unknown."""
        ...
