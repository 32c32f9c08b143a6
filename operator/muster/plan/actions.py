"""What a decision asks a backend to do. Each is idempotent: a world that has it already stays as it is."""

from dataclasses import dataclass

from muster_worker.contract import Command


@dataclass(frozen=True)
class CreateNode:
    """Bring the node's process or pod, and its agent, into being."""

    node: int
    generation: int


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


Action = CreateNode | SendCommand | KillNode
