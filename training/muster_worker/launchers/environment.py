"""The environment of launchers and ranks."""

from __future__ import annotations

import os.path
from dataclasses import dataclass, field
from typing import Dict, Mapping, Optional, Tuple

from muster_worker.contract.rendezvous import is_rendezvous_variable
from muster_worker.contract.schema import Peer, Plan
from muster_worker.network.library_interfaces import Network, build_rank_variables
from muster_worker.rank import hook_environment, trainer_variables
from muster_worker.sagemaker import container

WORLD_REASON = ("spec.nodes, procsPerNode", "the rank's place among all ranks")
"""Reason for the rank and world size variables, for `muster explain`."""

RENDEZVOUS_REASON = ("agent", "node 0's address, known when all nodes are ready")
"""Reason for the address and port of the rendezvous."""

ARCHIVE_SUFFIX = ".pyz"
"""The end of the path of an archive that was not unpacked."""


@dataclass(frozen=True)
class ForkServer:
    """The fork server of the launcher. `forks_ranks` is true if it also forks the ranks: their script imports torch."""

    pid: int
    socket_path: str
    forks_ranks: bool


@dataclass(frozen=True)
class NodeContext:
    """The node on which an attempt's processes run: the input of their environment.

    `root` is /opt/ml on a cluster, `run_dir` a private folder, `archive` the agent's zipapp or the folder into which it
    was unpacked, `python` its interpreter.
    """

    plan: Plan
    node: int
    peers: Tuple[Peer, ...]
    network: Network
    host: container.Host
    root: str
    run_dir: str
    socket_path: str
    archive: str
    python: str
    attempt: int = 1  # equal to `status.attempt`
    fork_server: Optional[ForkServer] = None
    trainer_variables: Mapping[str, str] = field(default_factory=dict)  # of the agent's server, on the node of rank 0

    @property
    def program(self) -> str:
        """The path that `python` runs: the archive, or the folder's `__main__.py`, which starts faster."""
        return self.archive if self.archive.endswith(ARCHIVE_SUFFIX) else os.path.join(self.archive, "__main__.py")

    @property
    def fork_server_pid(self) -> Optional[int]:
        """The pid of the fork server, which outlives an attempt."""
        return None if self.fork_server is None else self.fork_server.pid

    @property
    def master(self) -> Peer:
        """The peer of the rendezvous: node 0."""
        return self.peers[0]


def build_node_environment(base_environment: Mapping[str, str], context: NodeContext) -> Dict[str, str]:
    """Return the common environment of the node's processes. The user's variables have priority.

    The user's rendezvous variables are removed, since they belong to another rendezvous: a rank may itself run muster,
    or a shell may have exported them.
    """
    environment = {name: value for name, value in base_environment.items() if not is_rendezvous_variable(name)}
    for name, value in _build_defaults(environment, context).items():
        environment.setdefault(name, value)
    environment.update(trainer_variables.build_variables(environment, context.trainer_variables))
    if context.plan.has_code:
        # As SageMaker does, so that scripts/train.py can import modules from the folder that contains scripts/.
        user_value = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = f"{context.host.directory}:{user_value}" if user_value else context.host.directory
    environment.update(
        MUSTER_ATTEMPT=str(context.attempt),
        MUSTER_AGENT_SOCKET=context.socket_path,
        MUSTER_ARCHIVE=context.archive,
        # The backend stores only this folder beyond the job's end.
        MUSTER_CHECKPOINT_DIR=os.path.join(context.root, "checkpoints"),
        MUSTER_PYTHON=context.python,
        MUSTER_RUN_DIR=context.run_dir,
    )
    if context.fork_server is not None and context.fork_server.forks_ranks:
        environment[hook_environment.FORK_SERVER] = context.fork_server.socket_path
    return environment


def _build_defaults(user_value: Mapping[str, str], context: NodeContext) -> Dict[str, str]:
    defaults = {
        **build_rank_variables(context.network, (*user_value, *context.plan.command, *context.plan.launcher_args)),
        # When a signal ends a rank, its buffered output is lost, and with it the last lines.
        "PYTHONUNBUFFERED": "1",
        # Ranks with a thread per core of the machine would slow each other down. torchrun always sets 1.
        "OMP_NUM_THREADS": str(max(1, context.host.cpus // context.plan.procs_per_node)),
    }
    defaults.update(container.build_sagemaker_variables(context.plan, context.node, context.host, context.root))
    return defaults
