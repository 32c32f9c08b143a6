"""The environment of launchers and ranks: from the user, the rendezvous, the network, SageMaker and muster."""

from __future__ import annotations

import os.path
from dataclasses import dataclass
from typing import Dict, Mapping, Tuple

from muster_worker.contract.rendezvous import is_rendezvous_variable
from muster_worker.contract.schema import Peer, Plan
from muster_worker.network.library_interfaces import Network, rank_variables
from muster_worker.sagemaker import container

WORLD = ("spec.nodes, procsPerNode", "the rank's place among all ranks")
"""Reason for the rank and world size variables, for `muster explain`."""

RENDEZVOUS = ("agent", "node 0's address, known when all nodes are ready")
"""Reason for the rendezvous' address and port."""


@dataclass(frozen=True)
class Place:
    """Where an attempt's processes run: the input of their environment."""

    plan: Plan
    node: int
    peers: Tuple[Peer, ...]
    network: Network
    host: container.Host
    root: str
    run: str
    socket: str
    archive: str
    python: str
    attempt: int = 1  # equal to `status.attempt`

    @property
    def master(self) -> Peer:
        """The peer of the rendezvous: node 0."""
        return self.peers[0]


def node_environment(base: Mapping[str, str], place: Place) -> Dict[str, str]:
    """The common environment of the node's processes. The user's variables have priority, except those of a rendezvous.

    Such variables would belong to another attempt: a rank may itself run muster, or a shell may have exported them.
    """
    environment = {name: value for name, value in base.items() if not is_rendezvous_variable(name)}
    for name, value in _defaults(environment, place).items():
        environment.setdefault(name, value)
    if place.plan.has_code:
        # Like SageMaker, so that scripts/train.py can import modules from the folder of scripts/.
        user = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = f"{place.host.directory}:{user}" if user else place.host.directory
    environment.update(
        MUSTER_ATTEMPT=str(place.attempt),
        MUSTER_AGENT_SOCKET=place.socket,
        MUSTER_ARCHIVE=place.archive,
        # The backend stores only this folder beyond the job's end.
        MUSTER_CHECKPOINT_DIR=os.path.join(place.root, "checkpoints"),
        MUSTER_PYTHON=place.python,
        MUSTER_RUN_DIR=place.run,
    )
    return environment


def _defaults(user: Mapping[str, str], place: Place) -> Dict[str, str]:
    defaults = {
        **rank_variables(place.network, (*user, *place.plan.command, *place.plan.launcher_args)),
        # A signal discards buffered output, and with it a rank's last lines.
        "PYTHONUNBUFFERED": "1",
        # Ranks with a thread per core of the machine would slow each other down. torchrun always sets 1.
        "OMP_NUM_THREADS": str(max(1, place.host.cpus // place.plan.procs_per_node)),
    }
    defaults.update(container.variables(place.plan, place.node, place.host, place.root))
    return defaults
