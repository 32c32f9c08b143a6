"""What mpirun, its daemons and, by the node's file, its ranks find in their environment. Pure."""

from __future__ import annotations

import os.path
from typing import Dict, Mapping, Set

from muster_worker.contract.rendezvous import is_rendezvous_variable
from muster_worker.launchers.environment import Place, node_environment
from muster_worker.machine import memory_reading
from muster_worker.mpi import mpirun_variables, node_file
from muster_worker.mpi.implementations import World, is_own_mpirun
from muster_worker.mpi.mpirun_variables import Start
from muster_worker.network.library_interfaces import is_named_alike, launcher_variables, rank_variables
from muster_worker.rank import hook_environment
from muster_worker.remote.program import program

NODE_SPECIFIC = ("SM_CURRENT_HOST", "SM_RESOURCE_CONFIG")
"""What would be wrong on any other node, should an mpirun of the owner's own send it there."""


def world(place: Place) -> World:
    """What is asked of mpirun."""
    return World(
        nodes=place.plan.nodes,
        procs_per_node=place.plan.procs_per_node,
        open_mpi_hosts=os.path.join(place.run, "hosts.open-mpi"),
        hydra_hosts=os.path.join(place.run, "hosts.hydra"),
    )


def watch(run: str) -> str:
    """The program by which an mpirun of the owner's own starts its ranks: the same path on all nodes of a cluster."""
    return os.path.join(run, "rank")


def node_variables(base: Mapping[str, str], place: Place) -> Dict[str, str]:
    """What the node's file says: all that ranks see here and that `base`, the node's own environment, doesn't have."""
    environment = _of_node(base, place)
    return {name: value for name, value in environment.items() if base.get(name) != value}


def daemon_environment(base: Mapping[str, str], place: Place) -> Dict[str, str]:
    """What another node's mpirun starts its daemon in here. Its ranks inherit it."""
    environment = {**_of_node(base, place), node_file.HERE: node_file.path(place.run)}
    return _with_hook(environment, place) if is_own_mpirun(place.plan) else environment


def launcher_environment(base: Mapping[str, str], place: Place, *, is_root: bool) -> Dict[str, str]:
    """What mpirun is started in: nothing that is right on node 0 only, for it may be sent to all ranks."""
    plan = place.plan
    environment = {name: value for name, value in base.items() if not is_rendezvous_variable(name)}
    if is_own_mpirun(plan):  # its ranks have no wrapper of ours that would tell them
        node = _of_node(base, place)
        wrong = {name for name in node if is_rendezvous_variable(name) or name in NODE_SPECIFIC}
        wrong |= _names_of_interface(place) - base.keys()
        environment = _with_hook({name: value for name, value in node.items() if name not in wrong}, place)
    said = (*base, *plan.command, *plan.launcher_args)
    for name, value in launcher_variables(place.network, place.peers, said).items():
        environment.setdefault(name, value)
    asked = world(place)
    start = Start(
        remote=program(place.run),
        open_mpi_hosts=asked.open_mpi_hosts,
        hydra_hosts=asked.hydra_hosts,
        procs_per_node=plan.procs_per_node,
        is_root=is_root,
        watch=watch(place.run) if is_own_mpirun(plan) else None,
    )
    environment.update(mpirun_variables.launch_variables(start, environment))
    environment[node_file.FIRST] = node_file.path(place.run)
    return environment


def _names_of_interface(place: Place) -> Set[str]:
    """Variables with the name of node 0's interface, where that of another node is called otherwise."""
    if is_named_alike(place.network, place.peers):
        return set()
    return {"SM_NETWORK_INTERFACE_NAME", *rank_variables(place.network, ())}


def _of_node(base: Mapping[str, str], place: Place) -> Dict[str, str]:
    return {
        **({memory_reading.VARIABLE: "0"} if place.host.memory_unreadable else {}),
        **node_environment(base, place),
        node_file.NODE: str(place.node),
        node_file.NODES: str(place.plan.nodes),
        node_file.PROCS_PER_NODE: str(place.plan.procs_per_node),
    }


def _with_hook(environment: Dict[str, str], place: Place) -> Dict[str, str]:
    return hook_environment.with_hook(environment, place.archive, hook_environment.SCOPE_NODE)
