"""What a local run's ranks inherit: the user's environment, without another run's rendezvous, and the job's. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from muster.api.spec.job import EnvVar, Job
from muster.backends.local.devices import VISIBLE
from muster.render.storage.git_token import VARIABLE
from muster_worker.contract.rendezvous import is_rendezvous_variable

_FOREIGN_PREFIXES = ("OMPI_", "PMI_", "PMIX_", "SM_")
"""What MPI and SageMaker tell their ranks. A job may set these, so that they are no variables of the rendezvous."""


@dataclass(frozen=True)
class Inherited:
    """`variables` without those in `dropped`, which belong to another run's rendezvous."""

    variables: Mapping[str, str]
    dropped: tuple[str, ...]


def inherit(environment: Mapping[str, str]) -> Inherited:
    """The user's environment as a new run may see it: a shell inside SLURM or torchrun carries that one's ranks."""
    # the process that fetches the code needs the token; the code itself must not have it
    own = {name: value for name, value in environment.items() if name != VARIABLE}
    dropped = tuple(sorted(name for name in own if _is_foreign(name)))
    return Inherited({name: value for name, value in own.items() if name not in dropped}, dropped)


def _is_foreign(name: str) -> bool:
    return is_rendezvous_variable(name) or name.startswith(_FOREIGN_PREFIXES)


@dataclass(frozen=True)
class PythonHome:
    """The Python that muster runs on: its folder of commands, and whether it is a virtual environment with torch."""

    bin: str
    virtual: bool
    has_torch: bool


def with_python(environment: Mapping[str, str], home: PythonHome) -> Mapping[str, str] | None:
    """The environment with muster's own Python first on PATH; None when `python` should mean what it means to the user.

    Only a user who activated no environment, and whose muster lives in one with torch, can mean that one.
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
    """A variable that the job takes from elsewhere isn't in the user's environment; the message says what to do."""


def with_variables(job: Job, environment: Mapping[str, str]) -> Job:
    """The job with its `valueFrom` variables taken from the user's environment. Raises `MissingVariable`.

    Secrets and ConfigMaps are a cluster's. One that is optional there may be missing here, too.
    """
    variables = tuple(
        current
        for index, variable in enumerate(job.spec.env)
        if (current := _resolve(variable, index, environment)) is not None
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


def node_environment(
    inherited: Mapping[str, str], job: Job, world: int, gpus: tuple[str, ...], cores: int
) -> dict[str, str]:
    """What one node's agent, and through it the ranks, is started with. The job's own variables win over all."""
    environment = dict(inherited)
    if gpus:
        environment[VISIBLE] = ",".join(gpus)
    if world > 1:
        # all nodes share this machine's cores; the agent knows only of its own node's ranks
        environment.setdefault("OMP_NUM_THREADS", str(max(1, cores // world)))
    environment.update({variable.name: variable.value for variable in job.spec.env})
    return environment
