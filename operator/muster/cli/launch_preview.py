"""What a node's agent will start, computed with the agent's own pure modules. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from muster.api.spec import Job
from muster.backends.kubernetes.agent_container import FILES, RUN
from muster.backends.kubernetes.devices import gpus
from muster.backends.kubernetes.hardware import TYPE_VARIABLE
from muster.backends.kubernetes.machine_type import machine_type, sagemaker_name
from muster.backends.kubernetes.names import ARCHIVE_KEY
from muster.backends.kubernetes.opt_ml import CODE, ROOT
from muster.backends.kubernetes.own_python import is_brought, program
from muster.backends.kubernetes.owner_patches import owner_patches
from muster.backends.kubernetes.pod_patch import entries, stacked, trainer_of
from muster.cli import mpi_preview
from muster_worker import launchers, sagemaker
from muster_worker.contract import Launcher, Peer, Plan
from muster_worker.environment import Place, direct_environment, node_environment, per_node_environment
from muster_worker.hook_environment import HOOK, PYTHONPATH, SCOPE_NODE, SCOPE_RANK, with_hook
from muster_worker.library_interfaces import Network

HOOK_VARIABLES = (HOOK, PYTHONPATH)
"""Variables with which a Python rank starts, and which it doesn't see."""

UNKNOWN_TYPE = "local"
"""The agent's name for an unknown instance type, as in SageMaker's local mode."""

_PORT = 29500
_ATTEMPT = 1


@dataclass(frozen=True)
class Preview:
    """A node's command, and the environment of its first rank. `own` are the variables that the user set.

    Values that are known only at run time (addresses, programs, cores) are in capitals; the port is an example.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    own: Mapping[str, str]


def preview(job: Job, plan: Plan, node: int) -> Preview:
    """Compute what the agent of `node` starts."""
    own = _own_variables(job, node)
    place = _place(job, plan, node)
    counted = {name: value for name, value in _of_machine(job, node).items() if name not in own}
    return Preview(_command(place), {**_environment(own, place), **counted}, own)


def added(job: Job, plan: Plan, node: int) -> Mapping[str, str]:
    """The variables that the agent adds to an empty environment, its hook's included."""
    place = _place(job, plan, node)
    scope = SCOPE_NODE if plan.launcher == Launcher.PER_NODE and plan.procs_per_node > 1 else SCOPE_RANK
    result = {**_environment({}, place), **_of_machine(job, node)}
    return with_hook(result, place.archive, scope)


def _of_machine(job: Job, node: int) -> Mapping[str, str]:
    """Values that the agent counts at run time; the number of the container's GPUs is known before."""
    return {"SM_NUM_CPUS": "CPUS", "OMP_NUM_THREADS": "CPUS_PER_RANK", "SM_NUM_GPUS": gpus(job, node)}


def _own_variables(job: Job, node: int) -> dict[str, str]:
    variables = entries(trainer_of(stacked(owner_patches(job, node))), "env")
    return {str(variable["name"]): _value(variable.get("value"), variable.get("valueFrom")) for variable in variables}


def _value(value: object, elsewhere: object) -> str:
    if isinstance(elsewhere, dict):
        return "".join(f"<{kind}>" for kind in elsewhere)
    return str(value or "")


def _command(place: Place) -> tuple[str, ...]:
    plan = place.plan
    if plan.launcher == Launcher.TORCHRUN:
        return launchers.torchrun(place, _ATTEMPT, lambda _: "torchrun")
    if plan.launcher == Launcher.MPI:
        return mpi_preview.command(place)
    if plan.launcher == Launcher.PER_NODE and plan.procs_per_node > 1:
        return launchers.user_command(plan)
    return launchers.wrapper(place)


def _environment(own: Mapping[str, str], place: Place) -> Mapping[str, str]:
    if place.plan.launcher == Launcher.MPI:
        return mpi_preview.environment(own, place)
    environment = node_environment(own, place)
    if place.plan.launcher == Launcher.DIRECT:
        return direct_environment(environment, place, 0)
    if place.plan.launcher == Launcher.PER_NODE:
        return per_node_environment(environment, place, f"{RUN}/PYTHON_SHIM")
    return environment


def _place(job: Job, plan: Plan, node: int) -> Place:
    peers = tuple(Peer(index, f"ADDRESS_{index}", _PORT) for index in range(plan.nodes))
    return Place(
        plan=plan,
        node=node,
        peers=peers,
        network=Network("INTERFACE", "ADDRESS"),
        host=sagemaker.Host(
            cpus=1,
            gpus=0,
            instance_type=_instance_type(job, node),
            interface="INTERFACE",
            directory=CODE if plan.has_code else ".",
            # As under a runtime that forbids it: elsewhere MPICH works without this variable.
            memory_unreadable=True,
        ),
        root=ROOT,
        run=RUN,
        socket=f"{RUN}/agent.sock",
        archive=f"{FILES}/{ARCHIVE_KEY}",
        python=program(job) if is_brought(job) else "PYTHON",
    )


def _instance_type(job: Job, node: int) -> str:
    own = _own_variables(job, node).get(TYPE_VARIABLE)
    machine = machine_type(job, stacked(owner_patches(job, node)))
    return own or (UNKNOWN_TYPE if machine is None else sagemaker_name(machine))


def parts(plan: Plan, command: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """The parts of a node's command that muster adds: each option and its value."""
    arguments = launchers.user_command(plan)[len(plan.command) :]
    if not command:
        return ()
    before = command[: len(command) - len(plan.command) - len(arguments)]
    result: list[tuple[str, str]] = []
    if plan.launcher == Launcher.TORCHRUN:
        first, last = before.index("--nnodes"), before.index("--no_python")
        options = before[first : last - len(plan.launcher_args)]
        result.append(("launcher", shlex.join(before[:first])))
        result += list(zip(options[::2], options[1::2], strict=True))
        result.append(("--no_python", "set"))
        before = before[last + 1 :]
    if plan.launcher == Launcher.MPI and before:
        result += mpi_preview.parts(plan, command)
        before = before[before.index("-I") - 1 :]
    if before:
        result.append(("wrapper", shlex.join(before)))
    if arguments:
        result.append(("arguments", shlex.join(arguments)))
    return tuple(result)
