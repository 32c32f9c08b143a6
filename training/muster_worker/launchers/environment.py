"""The environment of launchers and ranks: the user's own, the rendezvous, the network, SageMaker's and muster's."""

from __future__ import annotations

import os.path
from dataclasses import dataclass
from typing import Dict, Mapping, Tuple

from muster_worker.contract.rendezvous import is_rendezvous_variable
from muster_worker.contract.schema import Peer, Plan
from muster_worker.network.library_interfaces import Network, rank_variables
from muster_worker.sagemaker import container

WORLD = ("spec.nodes, procsPerNode", "the rank's place among all ranks")
"""Why a launcher sets what tells a rank its place; for `muster explain`."""

MEETING = ("agent", "node 0's address, known when all nodes are ready")
"""The same of the rendezvous' address and port."""


@dataclass(frozen=True)
class Place:
    """Where an attempt's processes run: everything that their environment is made of."""

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
    attempt: int = 1  # as `status.attempt` counts: how often the ranks have been told to start

    @property
    def master(self) -> Peer:
        """The rendezvous: node 0."""
        return self.peers[0]


def node_environment(base: Mapping[str, str], place: Place) -> Dict[str, str]:
    """What every process of the node sees. Whatever the user set stays, except another run's rendezvous.

    A rank may run muster itself, or a shell may have kept variables of an earlier run.
    """
    environment = {name: value for name, value in base.items() if not is_rendezvous_variable(name)}
    for name, value in _defaults(environment, place).items():
        environment.setdefault(name, value)
    if place.plan.has_code:
        # as on SageMaker: scripts/train.py finds what lies beside scripts/
        user = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = f"{place.host.directory}:{user}" if user else place.host.directory
    environment.update(
        MUSTER_ATTEMPT=str(place.attempt),
        MUSTER_AGENT_SOCKET=place.socket,
        MUSTER_ARCHIVE=place.archive,
        # where the backend keeps them: what shall outlive the job lies behind this folder, in no other
        MUSTER_CHECKPOINT_DIR=os.path.join(place.root, "checkpoints"),
        MUSTER_PYTHON=place.python,
        MUSTER_RUN_DIR=place.run,
    )
    return environment


def _defaults(user: Mapping[str, str], place: Place) -> Dict[str, str]:
    defaults = {
        **rank_variables(place.network, (*user, *place.plan.command, *place.plan.launcher_args)),
        # a rank's last words would be lost in a buffer that a signal throws away
        "PYTHONUNBUFFERED": "1",
        # every rank taking every core makes all of them slow; torchrun's own answer is 1, whatever the machine has
        "OMP_NUM_THREADS": str(max(1, place.host.cpus // place.plan.procs_per_node)),
    }
    defaults.update(container.variables(place.plan, place.node, place.host, place.root))
    return defaults
