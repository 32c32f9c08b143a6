"""Starts mpirun on node 0: which one it is, and with what."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Mapping, Optional, Sequence, Tuple, Union

from muster_worker.contract.schema import AgentProblem, EndReason, Mpi
from muster_worker.launchers.base import Start
from muster_worker.launchers.commands import user_command, wrapper
from muster_worker.launchers.environment import Place
from muster_worker.launchers.launch import Launched, LaunchRefused, execute, refusal
from muster_worker.mpi import problem
from muster_worker.mpi.environment import launcher_environment, world
from muster_worker.mpi.implementations import PROGRAM, implementation, is_own_mpirun, is_spoken_to_alike, launch_command
from muster_worker.network.interfaces import list_interfaces
from muster_worker.rank.child import NOT_EXECUTABLE

VERSION_SECONDS = 20.0
"""How long `mpirun --version` may take: Intel's reads its settings from a network folder, now and then."""


def start_mpirun(place: Place, base: Mapping[str, str], master: str) -> Union[Launched, LaunchRefused]:
    """Start mpirun, on node 0's main thread. `master` is where torch.distributed may meet: ADDRESS:PORT."""
    program = place.plan.command[0] if is_own_mpirun(place.plan) else PROGRAM
    name = os.path.basename(program)
    try:
        command, environment = mpirun(place, base, master)
        return execute(Start(name, command, environment))
    except OSError as error:
        return refusal(name, program, error)
    except ValueError as error:
        return LaunchRefused(name, NOT_EXECUTABLE, EndReason.COMMAND_NOT_EXECUTABLE, str(error))


def mpirun(place: Place, base: Mapping[str, str], master: str) -> Tuple[Sequence[str], Mapping[str, str]]:
    """The command and environment of mpirun. `master` is where torch.distributed may meet, ADDRESS:PORT.

    Raises `OSError` when there is no mpirun, and `ValueError` when it is none that is known, or not the one meant.
    """
    environment = launcher_environment(base, place, is_root=os.geteuid() == 0)
    command = user_command(place.plan)
    if is_own_mpirun(place.plan):
        # a path is in nobody's PATH, and what is wrong with it the system says best
        if "/" not in command[0]:
            _program(command[0], environment)
        return command, environment
    kind = _kind(place, environment)
    if place.plan.mpi != Mpi.AUTO:
        _check(kind, environment)
    ranks = wrapper(place, f"--master={master}")
    return launch_command(kind, world(place), place.plan.launcher_args, ranks), environment


def find_problem(place: Place, base: Mapping[str, str]) -> Optional[AgentProblem]:
    """What keeps the mpirun that is here from reaching the other nodes; None when nothing is known to."""
    if place.plan.nodes == 1 or not place.network.is_ipv6:
        return None
    environment = launcher_environment(base, place, is_root=os.geteuid() == 0)
    try:
        kind = _kind(place, environment)
    except (OSError, ValueError):
        return None  # starting it tells
    return problem.find_problem(kind, environment, list_interfaces())


def _kind(place: Place, environment: Mapping[str, str]) -> str:
    """Whose mpirun it is. Raises as `mpirun` does."""
    if place.plan.mpi != Mpi.AUTO:
        return place.plan.mpi
    return _ask(place.plan.command[0] if is_own_mpirun(place.plan) else PROGRAM, environment)


def _check(named: str, environment: Mapping[str, str]) -> None:
    """Raises `ValueError` for an mpirun that says to be another one, with another command line than the job's."""
    program = _program(PROGRAM, environment)
    try:
        result = implementation(_version(program, environment))
    except ValueError:
        return  # whoever names it may know one that gives no answer
    if result is not None and not is_spoken_to_alike(result, named):
        raise ValueError(
            f"spec.launcher.mpi.implementation is {named}, and {program} says that it is {result}:"
            " name that, leave it at Auto, or put the other one first on PATH in spec.env"
        )


def _ask(name: str, environment: Mapping[str, str]) -> str:
    program = _program(name, environment)
    said = _version(program, environment)
    result = implementation(said)
    if result is None:
        first = said.strip().split("\n")[0][:200]
        raise ValueError(
            f"{program} --version says {first!r}, which is none of Open MPI, Intel MPI and MPICH:"
            " set spec.launcher.mpi.implementation to the one that it behaves like"
        )
    return result


def _program(name: str, environment: Mapping[str, str]) -> str:
    """Where it lies. Raises `FileNotFoundError`."""
    program = shutil.which(name, path=environment.get("PATH", os.defpath))
    if program is None:
        raise FileNotFoundError(
            2, "not found on PATH; spec.launcher.mpi needs an image with Open MPI, MPICH or Intel MPI"
        )
    return program


def _version(program: str, environment: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(
            (program, "--version"),
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=VERSION_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"{program} --version gave no answer in {VERSION_SECONDS:.0f} s") from None
    return done.stdout.decode("utf-8", "replace")
