"""What a node's agent will start, asked of the agent's own pure modules. Pure."""

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
from muster_worker.contract.schema import Peer, Plan
from muster_worker.launchers.commands import user_command
from muster_worker.launchers.environment import Place
from muster_worker.launchers.registry import find_launcher
from muster_worker.network.library_interfaces import Network
from muster_worker.rank.hook_environment import HOOK, PYTHONPATH, with_hook
from muster_worker.sagemaker import container

HOOK_VARIABLES = (HOOK, PYTHONPATH)
"""What a Python rank is started with and doesn't see."""

UNKNOWN_TYPE = "local"
"""What the agent says of a machine of unknown type: the word of SageMaker's own local mode."""

_PORT = 29500


@dataclass(frozen=True)
class Preview:
    """A node's command, and what its first rank sees. `own` are the variables that the job's owner set.

    What is only known when a job runs (addresses, programs, cores) stands in capitals; the port is an example.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    own: Mapping[str, str]


def preview(job: Job, plan: Plan, node: int) -> Preview:
    """What the agent of `node` starts."""
    own = _own_variables(job, node)
    place = _place(job, plan, node)
    counted = {name: value for name, value in _of_machine(job, node).items() if name not in own}
    start = find_launcher(plan.launcher).example(place, own)
    return Preview(tuple(start.command), {**start.environment, **counted}, own)


def added(job: Job, plan: Plan, node: int) -> Mapping[str, str]:
    """The variables that the agent adds to an environment in which nothing is set, its hook's included."""
    place = _place(job, plan, node)
    launcher = find_launcher(plan.launcher)
    result = {**launcher.example(place, {}).environment, **_of_machine(job, node)}
    return with_hook(result, place.archive, launcher.hook_scope(plan))


def _of_machine(job: Job, node: int) -> Mapping[str, str]:
    """What the agent will have counted: how many GPUs its container gets is known before."""
    return {"SM_NUM_CPUS": "CPUS", "OMP_NUM_THREADS": "CPUS_PER_RANK", "SM_NUM_GPUS": gpus(job, node)}


def _own_variables(job: Job, node: int) -> dict[str, str]:
    variables = entries(trainer_of(stacked(owner_patches(job, node))), "env")
    return {str(variable["name"]): _value(variable.get("value"), variable.get("valueFrom")) for variable in variables}


def _value(value: object, elsewhere: object) -> str:
    if isinstance(elsewhere, dict):
        return "".join(f"<{kind}>" for kind in elsewhere)
    return str(value or "")


def _place(job: Job, plan: Plan, node: int) -> Place:
    peers = tuple(Peer(index, f"ADDRESS_{index}", _PORT) for index in range(plan.nodes))
    return Place(
        plan=plan,
        node=node,
        peers=peers,
        network=Network("INTERFACE", "ADDRESS"),
        host=container.Host(
            cpus=1,
            gpus=0,
            instance_type=_instance_type(job, node),
            interface="INTERFACE",
            directory=CODE if plan.has_code else ".",
            # As under a runtime that forbids it: of one that doesn't, MPICH has its own way.
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
    """What a node's command is made of besides the words of the job's owner: each option of muster's and its value."""
    if not command:
        return ()
    owners = user_command(plan)
    options, wrapper = find_launcher(plan.launcher).split(plan, command[: len(command) - len(owners)])
    result = list(options)
    if wrapper:
        result.append(("wrapper", shlex.join(wrapper)))
    if owners != plan.command:
        result.append(("arguments", shlex.join(owners[len(plan.command) :])))
    return tuple(result)
