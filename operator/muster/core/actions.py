"""The actions a backend can be asked to do. Every action is idempotent."""

from dataclasses import dataclass

from muster_worker.contract.schema import Command


@dataclass(frozen=True)
class CreateNode:
    """Create the node's process or pod, with its agent."""

    node: int
    replacement: int


@dataclass(frozen=True)
class SendCommand:
    """Send `command` to the agents of these nodes."""

    nodes: tuple[int, ...]
    command: Command


@dataclass(frozen=True)
class KillNode:
    """Kill the node's process at once, without asking its agent."""

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
    """Delete a pod of the job that belongs to none of its current nodes."""

    name: str


@dataclass(frozen=True)
class DeleteResource:
    """Delete the job's resource; Kubernetes then deletes everything it owns."""


Action = CreateNode | SendCommand | KillNode | RemoveNode | RemoveStray | DeleteResource
