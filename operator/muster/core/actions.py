"""The actions that a backend executes. Every action is idempotent."""

from dataclasses import dataclass

from muster_worker.contract.schema import Command


@dataclass(frozen=True)
class CreateNode:
    """Create the node's process or pod, with its agent. Its pod avoids these Kubernetes nodes if possible."""

    node: int
    replacement: int
    avoided_nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class SendCommand:
    """Send `command` to the agents of these nodes."""

    nodes: tuple[int, ...]
    command: Command


@dataclass(frozen=True)
class KillNode:
    """Kill the node's process at once, without a command to its agent. The operator logs `why`."""

    node: int
    why: str


@dataclass(frozen=True)
class RemoveNode:
    """Delete the node's pod; its containers get `grace_seconds` between SIGTERM and SIGKILL.

    The operator logs `why`.
    """

    node: int
    grace_seconds: float
    why: str


@dataclass(frozen=True)
class RemoveSurplusPod:
    """Delete a pod of the job that belongs to none of the current nodes."""

    name: str


@dataclass(frozen=True)
class DeleteResource:
    """Delete the job's resource; Kubernetes then deletes everything it owns."""


Action = CreateNode | SendCommand | KillNode | RemoveNode | RemoveSurplusPod | DeleteResource
