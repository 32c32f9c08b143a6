"""What a decision asks a backend to do. Each is idempotent: a world that has it already stays as it is."""

from dataclasses import dataclass

from muster_worker.contract.schema import Command


@dataclass(frozen=True)
class CreateNode:
    """Bring the node's process or pod, and its agent, into being."""

    node: int
    replacement: int


@dataclass(frozen=True)
class SendCommand:
    """Make `command` the current one of these nodes' agents."""

    nodes: tuple[int, ...]
    command: Command


@dataclass(frozen=True)
class KillNode:
    """End the node's process at once, whatever its agent says."""

    node: int
    why: str


@dataclass(frozen=True)
class RemoveNode:
    """Delete the node's pod; what still runs in it gets `grace_seconds` from SIGTERM to SIGKILL."""

    node: int
    grace_seconds: float
    why: str


@dataclass(frozen=True)
class RemoveStray:
    """Delete a pod of the job that is none of its nodes (any more)."""

    name: str


@dataclass(frozen=True)
class DeleteResource:
    """Delete the job's resource; Kubernetes deletes all that belongs to it."""


Action = CreateNode | SendCommand | KillNode | RemoveNode | RemoveStray | DeleteResource
