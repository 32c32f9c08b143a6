"""Preview a node's command and environment with the agent's own pure modules. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from muster.api.spec.job import Job
from muster.objects.kubernetes.names import ARCHIVE_KEY
from muster.render.kubernetes.agent_container import AGENT_FOLDER, RUN_FOLDER
from muster.render.kubernetes.devices import get_gpu_limit
from muster.render.kubernetes.hardware import TYPE_VARIABLE
from muster.render.kubernetes.machine_type import find_machine_type, get_sagemaker_name
from muster.render.kubernetes.opt_ml import CODE, ROOT
from muster.render.kubernetes.own_python import get_agent_python, uses_own_python
from muster.render.kubernetes.pod_patch import get_entries, get_trainer, merge_patches
from muster.render.kubernetes.user_patches import collect_user_patches
from muster_worker.contract.schema import Peer, Plan
from muster_worker.launchers.commands import build_user_command, find_script
from muster_worker.launchers.environment import NodeContext
from muster_worker.launchers.registry import find_launcher
from muster_worker.network.library_interfaces import Network
from muster_worker.rank import trainer_variables
from muster_worker.rank.hook_environment import HOOK, PYTHONPATH, add_hook
from muster_worker.rank.trainer_socket import CA_NAME, PATH
from muster_worker.sagemaker import container

HOOK_VARIABLES = (HOOK, PYTHONPATH)
"""Variables that muster removes from the environment of a Python rank before its first line."""

UNKNOWN_TYPE = "local"
"""The agent's name for an unknown instance type, as in SageMaker's local mode."""

_PORT = 29500

_TRAINER_VARIABLES = {
    trainer_variables.URL: f"http://{trainer_variables.ADDRESS}:PORT{PATH}",
    trainer_variables.CA_CERT: f"{RUN_FOLDER}/{CA_NAME}",
    trainer_variables.TOKEN: f"{RUN_FOLDER}/{trainer_variables.TOKEN_FILE}",
}


@dataclass(frozen=True)
class LaunchPreview:
    """A node's command, and the environment of its first rank. `user_variables` are those that the user set.

    Values that are unknown before the job runs (addresses, programs, cores) are in capitals. The port is an example.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    user_variables: Mapping[str, str]


def preview_launch(job: Job, plan: Plan, node: int) -> LaunchPreview:
    """Return the launch that the agent of `node` would run."""
    user_variables = _get_user_variables(job, node)
    context = _build_context(job, plan, node)
    machine_variables = {
        name: value for name, value in _make_machine_variables(job, node).items() if name not in user_variables
    }
    start = find_launcher(plan.launcher).build_example(context, user_variables)
    return LaunchPreview(tuple(start.command), {**start.environment, **machine_variables}, user_variables)


def explain_warm_start(plan: Plan) -> tuple[str, str, str]:
    """Return whether a fork server starts the ranks, the field that sets it, and the reason."""
    script, source = find_script(plan), "spec.warmStart"
    if isinstance(script, str):
        return "no", source, script
    why = "a process that has imported it forks the ranks, which then start in less than a second"
    return f"if {script.script} imports torch", source, why


def list_added_variables(job: Job, plan: Plan, node: int) -> Mapping[str, str]:
    """Return the variables that the agent adds to an empty environment, including those of its hook."""
    context = _build_context(job, plan, node)
    launcher = find_launcher(plan.launcher)
    result = {**launcher.build_example(context, {}).environment, **_make_machine_variables(job, node)}
    return add_hook(result, context.archive, launcher.choose_hook_scope(plan))


def _make_machine_variables(job: Job, node: int) -> Mapping[str, str]:
    """Return placeholders for values that the agent determines at run time, except the container's GPUs."""
    return {"SM_NUM_CPUS": "CPUS", "OMP_NUM_THREADS": "CPUS_PER_RANK", "SM_NUM_GPUS": get_gpu_limit(job, node)}


def _get_user_variables(job: Job, node: int) -> dict[str, str]:
    variables = get_entries(get_trainer(merge_patches(collect_user_patches(job, node))), "env")
    return {
        str(variable["name"]): _resolve_value(variable.get("value"), variable.get("valueFrom"))
        for variable in variables
    }


def _resolve_value(value: object, value_from: object) -> str:
    if isinstance(value_from, dict):
        return "".join(f"<{kind}>" for kind in value_from)
    return str(value or "")


def _build_context(job: Job, plan: Plan, node: int) -> NodeContext:
    peers = tuple(Peer(index, f"ADDRESS_{index}", _PORT) for index in range(plan.nodes))
    return NodeContext(
        plan=plan,
        node=node,
        peers=peers,
        network=Network("INTERFACE", "ADDRESS"),
        host=container.Host(
            cpus=1,
            gpus=0,
            instance_type=_find_instance_type(job, node),
            interface="INTERFACE",
            directory=CODE if plan.has_code else ".",
            # Assume a container runtime that forbids ranks to read each other's memory, for which MPICH needs a
            # variable.
            memory_unreadable=True,
        ),
        root=ROOT,
        run_dir=RUN_FOLDER,
        socket_path=f"{RUN_FOLDER}/agent.sock",
        archive=f"{AGENT_FOLDER}/{ARCHIVE_KEY}",
        python=get_agent_python(job) if uses_own_python(job) else "PYTHON",
        trainer_variables=_TRAINER_VARIABLES if node == 0 else {},
    )


def _find_instance_type(job: Job, node: int) -> str:
    user_value = _get_user_variables(job, node).get(TYPE_VARIABLE)
    machine = find_machine_type(job, merge_patches(collect_user_patches(job, node)))
    return user_value or (UNKNOWN_TYPE if machine is None else get_sagemaker_name(machine))


def list_command_parts(plan: Plan, command: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the options that muster adds to a node's command, with their values."""
    if not command:
        return ()
    user_arguments = build_user_command(plan)
    options, wrapper = find_launcher(plan.launcher).split_command(plan, command[: len(command) - len(user_arguments)])
    result = list(options)
    if wrapper:
        result.append(("wrapper", shlex.join(wrapper)))
    if user_arguments != plan.command:
        result.append(("arguments", shlex.join(user_arguments[len(plan.command) :])))
    return tuple(result)
