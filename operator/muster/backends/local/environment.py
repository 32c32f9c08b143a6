"""Compute the environment variables of a local run's ranks. Pure.

They are the user's, without those of another run's rendezvous, overridden by the job's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from muster.api.spec.job import EnvVar, Job
from muster.backends.local.devices import VISIBLE_DEVICES
from muster.render.storage.git_token import GIT_TOKEN_VARIABLE
from muster_worker.contract.rendezvous import is_rendezvous_variable

_OTHER_RUN_PREFIXES = ("OMPI_", "PMI_", "PMIX_", "SM_")
"""Variables that MPI and SageMaker set for their ranks. Unlike rendezvous variables, a job may set them."""


@dataclass(frozen=True)
class InheritedEnvironment:
    """The inherited `variables`, and the names of variables that were dropped because they belong to another run."""

    variables: Mapping[str, str]
    dropped_names: tuple[str, ...]


def inherit(environment: Mapping[str, str]) -> InheritedEnvironment:
    """Copy the user's environment without another run's variables, such as those of a SLURM job around this one."""
    # only the process that fetches the code gets the git token
    variables = {name: value for name, value in environment.items() if name != GIT_TOKEN_VARIABLE}
    dropped_names = tuple(sorted(name for name in variables if _is_of_other_run(name)))
    return InheritedEnvironment(
        {name: value for name, value in variables.items() if name not in dropped_names}, dropped_names
    )


def _is_of_other_run(name: str) -> bool:
    return is_rendezvous_variable(name) or name.startswith(_OTHER_RUN_PREFIXES)


@dataclass(frozen=True)
class PythonHome:
    """The Python that runs muster: its bin folder, whether it is a virtual environment, and whether it has torch."""

    bin: str
    virtual: bool
    has_torch: bool


def put_python_on_path(environment: Mapping[str, str], home: PythonHome) -> Mapping[str, str] | None:
    """Put muster's Python first on PATH, or return None to keep the user's `python`.

    Only if no environment is active, and muster is installed in a virtual environment that has torch.
    """
    if "VIRTUAL_ENV" in environment or "CONDA_PREFIX" in environment:
        return None
    if not (home.virtual and home.has_torch):
        return None
    path = environment.get("PATH", "")
    if path.split(":")[0] == home.bin:
        return None
    return {**environment, "PATH": f"{home.bin}:{path}" if path else home.bin}


class MissingVariable(Exception):
    """The user's environment lacks a variable that the job needs; the message says what to do."""


def resolve_variables(job: Job, environment: Mapping[str, str]) -> Job:
    """Resolve `valueFrom` from the user's environment. Raises `MissingVariable`.

    Secrets and ConfigMaps exist only in a cluster. Optional variables may be missing.
    """
    variables = tuple(
        resolved
        for index, variable in enumerate(job.spec.env)
        if (resolved := _resolve(variable, index, environment)) is not None
    )
    return job.model_copy(update={"spec": job.spec.model_copy(update={"env": variables})})


def _resolve(variable: EnvVar, index: int, environment: Mapping[str, str]) -> EnvVar | None:
    if variable.value_from is None:
        return variable
    if variable.name in environment:
        return EnvVar(name=variable.name, value=environment[variable.name])
    sources = variable.value_from.values()
    if all(isinstance(source, dict) and source.get("optional") is True for source in sources):
        return None
    raise MissingVariable(
        f"spec.env[{index}].valueFrom: {variable.name} is not in your environment, where `muster run` takes it from;"
        f" export {variable.name}=... first"
    )


def build_agent_environment(
    inherited_variables: Mapping[str, str], job: Job, world: int, gpus: tuple[str, ...], cores: int
) -> dict[str, str]:
    """Return the environment of a node's agent and its ranks. The job's own variables override the others."""
    environment = dict(inherited_variables)
    if gpus:
        environment[VISIBLE_DEVICES] = ",".join(gpus)
    if world > 1:
        # the ranks of all nodes share this machine's cores, but each agent counts only the ranks of its own node
        environment.setdefault("OMP_NUM_THREADS", str(max(1, cores // world)))
    environment.update({variable.name: variable.value for variable in job.spec.env})
    return environment
