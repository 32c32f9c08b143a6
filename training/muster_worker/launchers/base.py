"""What a launcher is: how a node's share of an attempt is started. `registry.py` lists them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, ClassVar, Dict, Mapping, Optional, Sequence, Tuple

from muster_worker.launchers.environment import Place, node_environment
from muster_worker.rank import hook_environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    import selectors
    import socket

    from muster_worker.agent.log import Log
    from muster_worker.contract.schema import Credentials, Plan
    from muster_worker.mpi.node import MpiWorld

Which = Callable[[str], Optional[str]]
"""The full path of a command on the ranks' PATH, None when it isn't there."""

Reason = Tuple[str, str]
"""Where a value comes from (a field of the job, or who decides), and why it is set; `muster explain` shows both."""


@dataclass(frozen=True)
class Way:
    """How the other nodes come here: the port that they were told, the loop that listens to it, and where to say so."""

    port: socket.socket
    selector: selectors.BaseSelector
    log: Log


@dataclass(frozen=True)
class Start:
    """A process to be started. `name` stands before its own lines; `rank` is set when it is a rank's wrapper."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    rank: Optional[int] = None
    passes_signals: bool = False  # SIGTERM to it alone: it tells its ranks
    speaks_for_rank: bool = False  # until a process inside says that it is the rank


class Launcher:
    """One way to start ranks. A new one is a subclass in a module of its own, and a line in `registry.py`."""

    needs_own_hosts = False
    """Whether nodes on one machine must have host names of their own."""

    starts_each_rank = False
    """Whether `starts` has a process for each rank."""

    program_of_first_node = ""
    """The program that runs on node 0 alone, where there is one."""

    variables: ClassVar[Mapping[str, Reason]] = {}
    """What it adds to the node's environment, with the reason."""

    options: ClassVar[Mapping[str, Reason]] = {}
    """What its command line has besides the job's own words, with the reason."""

    def prepare(self, place: Place) -> None:
        """Write the files that the processes need. Raises `OSError`."""

    def starts(self, place: Place, node: Dict[str, str], which: Which) -> Sequence[Start]:
        """The processes of this node, in order. `node` is what every process of it sees. Pure."""
        raise NotImplementedError

    def join_world(
        self, place: Place, base: Mapping[str, str], credentials: Optional[Credentials], way: Way
    ) -> Optional[MpiWorld]:
        """This node's part, where node 0 starts the ranks of all nodes; None where each node starts its own.

        Raises `OSError`.
        """
        return None

    def mismatch(self, place: Place, rank: int, world: int, local_world: int) -> Optional[str]:
        """Why a rank is not where the job has it, by what the launcher has told it; None: nothing is wrong."""
        return None

    def example(self, place: Place, own: Mapping[str, str]) -> Start:
        """What `muster render` and `muster explain` show of a node: its first process and what a rank sees. Pure."""
        start = self.starts(place, node_environment(own, place), lambda name: name)[0]
        seen = hook_environment.without_hook(start.environment, place.archive)
        return Start(start.name, tuple(start.command), seen)

    def hook_scope(self, plan: Plan) -> str:
        """Whose environment the hook is put into: a rank's own, or that of a command that starts ranks."""
        return hook_environment.SCOPE_RANK

    def split(self, plan: Plan, words: Tuple[str, ...]) -> Tuple[Tuple[Tuple[str, str], ...], Tuple[str, ...]]:
        """What stands before the job's own words: the launcher's options with their values, and the rank's wrapper.

        The options' names are those of `options`.
        """
        return (), words
