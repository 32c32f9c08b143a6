"""Find the job and the node of a pod. Each backend implements this for its pods."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class PodIdentity:
    """The job and the node that a pod belongs to, and its replacement number."""

    job_uid: str
    node: int
    replacement: int


class PodDirectory(Protocol):
    """The pods that muster created."""

    def find(self, pod_uid: str) -> PodIdentity | None:
        """Return the pod's job, node and replacement number; None if the pod is unknown."""
        ...
