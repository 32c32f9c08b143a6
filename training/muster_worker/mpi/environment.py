"""The environment of mpirun, of its daemons and of its ranks (in the node file). Pure."""

from __future__ import annotations

import os.path
from typing import Dict, Mapping, Set

from muster_worker.contract.rendezvous import is_rendezvous_variable
from muster_worker.launchers.environment import NodeContext, build_node_environment
from muster_worker.machine import memory_reading
from muster_worker.mpi import mpirun_variables, node_file
from muster_worker.mpi.implementations import World, is_user_mpirun
from muster_worker.mpi.mpirun_variables import MpirunSetup
from muster_worker.network.library_interfaces import build_launcher_variables, build_rank_variables, has_same_name
from muster_worker.rank import hook_environment
from muster_worker.remote.program import get_program_path

NODE_SPECIFIC = ("SM_CURRENT_HOST", "SM_RESOURCE_CONFIG")
"""Variables whose values would be wrong on other nodes, if a user's own mpirun sends them there."""


def build_world(context: NodeContext) -> World:
    """Return the world that mpirun has to start."""
    return World(
        nodes=context.plan.nodes,
        procs_per_node=context.plan.procs_per_node,
        open_mpi_hosts=os.path.join(context.run_dir, "hosts.open-mpi"),
        hydra_hosts=os.path.join(context.run_dir, "hosts.hydra"),
    )


def get_rank_wrapper_path(run: str) -> str:
    """Return the path of the program with which a user's own mpirun starts its ranks, the same on all nodes."""
    return os.path.join(run, "rank")


def build_node_variables(base_environment: Mapping[str, str], context: NodeContext) -> Dict[str, str]:
    """Return the content of the node file: the ranks' variables that differ from the agent's `base_environment`."""
    environment = _build_node_specific_variables(base_environment, context)
    return {name: value for name, value in environment.items() if base_environment.get(name) != value}


def build_daemon_environment(base_environment: Mapping[str, str], context: NodeContext) -> Dict[str, str]:
    """Return the environment of the daemons that mpirun starts on this node. Ranks inherit it."""
    environment = {
        **_build_node_specific_variables(base_environment, context),
        node_file.NODE_FILE_VARIABLE: node_file.get_path(context.run_dir),
    }
    return _add_hook(environment, context) if is_user_mpirun(context.plan) else environment


def build_mpirun_environment(
    base_environment: Mapping[str, str], context: NodeContext, *, is_root: bool
) -> Dict[str, str]:
    """Return the environment of mpirun, without values that only fit node 0: mpirun may send it to all ranks."""
    plan = context.plan
    environment = {name: value for name, value in base_environment.items() if not is_rendezvous_variable(name)}
    if is_user_mpirun(plan):  # its ranks may have no wrapper that reads the node file
        node = _build_node_specific_variables(base_environment, context)
        excluded = {name for name in node if is_rendezvous_variable(name) or name in NODE_SPECIFIC}
        excluded |= _list_interface_variables(context) - base_environment.keys()
        environment = _add_hook({name: value for name, value in node.items() if name not in excluded}, context)
    user_words = (*base_environment, *plan.command, *plan.launcher_args)
    for name, value in build_launcher_variables(context.network, context.peers, user_words).items():
        environment.setdefault(name, value)
    mpi_world = build_world(context)
    setup = MpirunSetup(
        remote=get_program_path(context.run_dir),
        open_mpi_hosts=mpi_world.open_mpi_hosts,
        hydra_hosts=mpi_world.hydra_hosts,
        procs_per_node=plan.procs_per_node,
        is_root=is_root,
        rank_wrapper=get_rank_wrapper_path(context.run_dir) if is_user_mpirun(plan) else None,
    )
    environment.update(mpirun_variables.build_mpirun_variables(setup, environment))
    environment[node_file.FIRST_NODE_FILE_VARIABLE] = node_file.get_path(context.run_dir)
    return environment


def _list_interface_variables(context: NodeContext) -> Set[str]:
    """Return the names of the variables with the interface's name, if it differs between nodes."""
    if has_same_name(context.network, context.peers):
        return set()
    return {"SM_NETWORK_INTERFACE_NAME", *build_rank_variables(context.network, ())}


def _build_node_specific_variables(base_environment: Mapping[str, str], context: NodeContext) -> Dict[str, str]:
    return {
        **({memory_reading.CMA_VARIABLE: "0"} if context.host.memory_unreadable else {}),
        **build_node_environment(base_environment, context),
        node_file.NODE_VARIABLE: str(context.node),
        node_file.NODES_VARIABLE: str(context.plan.nodes),
        node_file.PROCS_PER_NODE_VARIABLE: str(context.plan.procs_per_node),
    }


def _add_hook(environment: Dict[str, str], context: NodeContext) -> Dict[str, str]:
    return hook_environment.add_hook(environment, context.archive, hook_environment.SCOPE_NODE)
