"""The environment of mpirun, of its daemons and of its ranks (in the node file). Pure."""

from __future__ import annotations

import os.path
from typing import Dict, Mapping, Set

from muster_worker.contract.rendezvous import is_rendezvous_variable
from muster_worker.launchers.environment import Place, node_environment
from muster_worker.machine import memory_reading
from muster_worker.mpi import mpirun_variables, node_file
from muster_worker.mpi.implementations import World, is_user_mpirun
from muster_worker.mpi.mpirun_variables import Start
from muster_worker.network.library_interfaces import has_same_name, launcher_variables, rank_variables
from muster_worker.rank import hook_environment
from muster_worker.remote.program import program

NODE_SPECIFIC = ("SM_CURRENT_HOST", "SM_RESOURCE_CONFIG")
"""Wrong on other nodes, if a user's own mpirun sends it there."""


def world(place: Place) -> World:
    """The world that mpirun has to start."""
    return World(
        nodes=place.plan.nodes,
        procs_per_node=place.plan.procs_per_node,
        open_mpi_hosts=os.path.join(place.run, "hosts.open-mpi"),
        hydra_hosts=os.path.join(place.run, "hosts.hydra"),
    )


def rank_wrapper(run: str) -> str:
    """Path of the program with which a user's own mpirun starts its ranks: the same on all nodes of a cluster."""
    return os.path.join(run, "rank")


def node_variables(base: Mapping[str, str], place: Place) -> Dict[str, str]:
    """The content of the node file: the ranks' variables that differ from `base`, the node's own environment."""
    environment = _node_specific(base, place)
    return {name: value for name, value in environment.items() if base.get(name) != value}


def daemon_environment(base: Mapping[str, str], place: Place) -> Dict[str, str]:
    """The environment of the daemons that another node's mpirun starts here; ranks inherit it."""
    environment = {**_node_specific(base, place), node_file.HERE: node_file.path(place.run)}
    return _with_hook(environment, place) if is_user_mpirun(place.plan) else environment


def launcher_environment(base: Mapping[str, str], place: Place, *, is_root: bool) -> Dict[str, str]:
    """The environment of mpirun, without values specific to node 0: mpirun may send it to all ranks."""
    plan = place.plan
    environment = {name: value for name, value in base.items() if not is_rendezvous_variable(name)}
    if is_user_mpirun(plan):  # its ranks have no wrapper that would read the node file
        node = _node_specific(base, place)
        excluded = {name for name in node if is_rendezvous_variable(name) or name in NODE_SPECIFIC}
        excluded |= _interface_variables(place) - base.keys()
        environment = _with_hook({name: value for name, value in node.items() if name not in excluded}, place)
    user_words = (*base, *plan.command, *plan.launcher_args)
    for name, value in launcher_variables(place.network, place.peers, user_words).items():
        environment.setdefault(name, value)
    mpi_world = world(place)
    start = Start(
        remote=program(place.run),
        open_mpi_hosts=mpi_world.open_mpi_hosts,
        hydra_hosts=mpi_world.hydra_hosts,
        procs_per_node=plan.procs_per_node,
        is_root=is_root,
        rank_wrapper=rank_wrapper(place.run) if is_user_mpirun(plan) else None,
    )
    environment.update(mpirun_variables.launch_variables(start, environment))
    environment[node_file.FIRST] = node_file.path(place.run)
    return environment


def _interface_variables(place: Place) -> Set[str]:
    """Variables with the interface's name, if it differs between nodes."""
    if has_same_name(place.network, place.peers):
        return set()
    return {"SM_NETWORK_INTERFACE_NAME", *rank_variables(place.network, ())}


def _node_specific(base: Mapping[str, str], place: Place) -> Dict[str, str]:
    return {
        **({memory_reading.VARIABLE: "0"} if place.host.memory_unreadable else {}),
        **node_environment(base, place),
        node_file.NODE: str(place.node),
        node_file.NODES: str(place.plan.nodes),
        node_file.PROCS_PER_NODE: str(place.plan.procs_per_node),
    }


def _with_hook(environment: Dict[str, str], place: Place) -> Dict[str, str]:
    return hook_environment.with_hook(environment, place.archive, hook_environment.SCOPE_NODE)
