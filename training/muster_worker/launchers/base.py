"""Base class of launchers: a launcher starts a node's processes of an attempt. `registry.py` lists them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, ClassVar, Dict, Mapping, Optional, Sequence, Tuple

from muster_worker.launchers.environment import NodeContext, build_node_environment
from muster_worker.rank import hook_environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    import selectors
    import socket

    from muster_worker.agent.log import Log
    from muster_worker.contract.schema import Credentials, Plan
    from muster_worker.mpi.node import MpiWorld

FindProgram = Callable[[str], Optional[str]]
"""Returns the full path of a command on the ranks' PATH; None if it is missing."""

Reason = Tuple[str, str]
"""The source of a value (a field of the job, or a component) and the reason for it. `muster explain` shows both."""


@dataclass(frozen=True)
class LauncherIO:
    """The resources of a launcher for connections from other nodes: a bound socket, the event loop and the log."""

    port_socket: socket.socket
    selector: selectors.BaseSelector
    log: Log


@dataclass(frozen=True)
class ProcessSpec:
    """A process to start. `name` is the prefix of its output. `rank` is set for a rank's wrapper."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    rank: Optional[int] = None
    forwards_signals: bool = False  # forwards SIGTERM to its ranks
    can_be_killed_after_ranks: bool = False  # once a stop has ended its ranks, it can be killed
    represents_rank: bool = False  # it counts as the rank until one of its children reports to be the rank


class Launcher:
    """A way to start ranks. To add one, write a module with a subclass and add a line to `registry.py`."""

    needs_own_hosts = False
    """Whether nodes on one machine need different host names."""

    starts_each_rank = False
    """Whether `list_processes` returns a process for each rank."""

    program_of_first_node = ""
    """The program that runs on node 0 only, if there is one."""

    variables: ClassVar[Mapping[str, Reason]] = {}
    """Variables that the launcher adds to the node's environment, with their reasons."""

    options: ClassVar[Mapping[str, Reason]] = {}
    """Options that the launcher adds to the command line, with their reasons."""

    def prepare(self, context: NodeContext) -> None:
        """Write the files that the processes need. Raises `OSError`."""

    def list_processes(
        self, context: NodeContext, environment: Dict[str, str], find_program: FindProgram
    ) -> Sequence[ProcessSpec]:
        """Return the processes of this node, in order. `environment` is their common environment. Pure."""
        raise NotImplementedError

    def join_world(
        self,
        context: NodeContext,
        base_environment: Mapping[str, str],
        credentials: Optional[Credentials],
        io: LauncherIO,
    ) -> Optional[MpiWorld]:
        """Create this node's part of a world that node 0 starts. Returns None if each node starts its own ranks.

        Raises `OSError`.
        """
        return None

    def describe_mismatch(self, context: NodeContext, rank: int, world: int, local_world: int) -> Optional[str]:
        """Describe how the launcher's rank or world size differs from the job's; None if it doesn't."""
        return None

    def build_example(self, context: NodeContext, user_variables: Mapping[str, str]) -> ProcessSpec:
        """Return the command of the node's first process with a rank's environment, for `muster render`. Pure."""
        process = self.list_processes(context, build_node_environment(user_variables, context), lambda name: name)[0]
        rank_environment = hook_environment.remove_hook(process.environment, context.archive)
        return ProcessSpec(process.name, tuple(process.command), rank_environment)

    def choose_hook_scope(self, plan: Plan) -> str:
        """Return the scope of the hook: a rank, or a node's command that starts ranks."""
        return hook_environment.SCOPE_RANK

    def split_command(self, plan: Plan, words: Tuple[str, ...]) -> Tuple[Tuple[Tuple[str, str], ...], Tuple[str, ...]]:
        """Split a command line into the launcher's options with their values, and the words from the rank's wrapper on.

        The options' names are keys of `options`.
        """
        return (), words
