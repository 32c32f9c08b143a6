"""Starts mpirun on node 0: detects the implementation, and builds the command and environment."""

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
from muster_worker.mpi import ipv4_only
from muster_worker.mpi.environment import launcher_environment, world
from muster_worker.mpi.implementations import (
    PROGRAM,
    has_same_options,
    implementation,
    is_user_mpirun,
    launch_command,
)
from muster_worker.network.interfaces import list_interfaces
from muster_worker.rank.child import NOT_EXECUTABLE

VERSION_SECONDS = 20.0
"""Intel's `mpirun --version` is slow at times, because it reads its settings from a network folder."""


def start_mpirun(place: Place, base: Mapping[str, str], master: str) -> Union[Launched, LaunchRefused]:
    """Start mpirun from node 0's main thread. `master` is torch.distributed's rendezvous, ADDRESS:PORT."""
    program = place.plan.command[0] if is_user_mpirun(place.plan) else PROGRAM
    name = os.path.basename(program)
    try:
        command, environment = mpirun(place, base, master)
        return execute(Start(name, command, environment))
    except OSError as error:
        return refusal(name, program, error)
    except ValueError as error:
        return LaunchRefused(name, NOT_EXECUTABLE, EndReason.COMMAND_NOT_EXECUTABLE, str(error))


def mpirun(place: Place, base: Mapping[str, str], master: str) -> Tuple[Sequence[str], Mapping[str, str]]:
    """The command and environment of mpirun. `master` is torch.distributed's rendezvous, ADDRESS:PORT.

    Raises `OSError` without an mpirun, and `ValueError` for an unknown or unexpected implementation.
    """
    environment = launcher_environment(base, place, is_root=os.geteuid() == 0)
    command = user_command(place.plan)
    if is_user_mpirun(place.plan):
        # for a path, the error of exec is enough
        if "/" not in command[0]:
            _find_program(command[0], environment)
        return command, environment
    kind = _find_implementation(place, environment)
    if place.plan.mpi != Mpi.AUTO:
        _check_implementation(kind, environment)
    ranks = wrapper(place, f"--master={master}")
    return launch_command(kind, world(place), place.plan.launcher_args, ranks), environment


def find_problem(place: Place, base: Mapping[str, str]) -> Optional[AgentProblem]:
    """Why this mpirun can't reach the other nodes; None without a known reason."""
    if place.plan.nodes == 1 or not place.network.is_ipv6:
        return None
    environment = launcher_environment(base, place, is_root=os.geteuid() == 0)
    try:
        kind = _find_implementation(place, environment)
    except (OSError, ValueError):
        return None  # the start of mpirun reports the problem
    return ipv4_only.find_problem(kind, environment, list_interfaces())


def _find_implementation(place: Place, environment: Mapping[str, str]) -> str:
    """The MPI implementation. Raises as `mpirun` does."""
    if place.plan.mpi != Mpi.AUTO:
        return place.plan.mpi
    return _detect_implementation(place.plan.command[0] if is_user_mpirun(place.plan) else PROGRAM, environment)


def _check_implementation(expected: str, environment: Mapping[str, str]) -> None:
    """Raises `ValueError` if mpirun is of an implementation with a different command line than the job's."""
    program = _find_program(PROGRAM, environment)
    try:
        result = implementation(_read_version(program, environment))
    except ValueError:
        return  # trust the job if mpirun doesn't print its version
    if result is not None and not has_same_options(result, expected):
        raise ValueError(
            f"spec.launcher.mpi.implementation is {expected}, but {program} is {result}:"
            f" set {result} or Auto, or put the other one first on PATH in spec.env"
        )


def _detect_implementation(name: str, environment: Mapping[str, str]) -> str:
    program = _find_program(name, environment)
    output = _read_version(program, environment)
    result = implementation(output)
    if result is None:
        first = output.strip().split("\n")[0][:200]
        raise ValueError(
            f"{program} --version prints {first!r}, which is not Open MPI, Intel MPI or MPICH:"
            " set spec.launcher.mpi.implementation to the compatible one"
        )
    return result


def _find_program(name: str, environment: Mapping[str, str]) -> str:
    """The path of a program. Raises `FileNotFoundError`."""
    program = shutil.which(name, path=environment.get("PATH", os.defpath))
    if program is None:
        raise FileNotFoundError(
            2, "not found on PATH; spec.launcher.mpi needs an image with Open MPI, MPICH or Intel MPI"
        )
    return program


def _read_version(program: str, environment: Mapping[str, str]) -> str:
    try:
        completed = subprocess.run(
            (program, "--version"),
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=VERSION_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"{program} --version did not finish in {VERSION_SECONDS:.0f} s") from None
    return completed.stdout.decode("utf-8", "replace")
