"""Starts mpirun on node 0: detects the implementation, and builds the command and environment."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import lru_cache
from typing import Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from muster_worker.contract.mpi import Mpi
from muster_worker.contract.schema import AgentProblem, EndReason
from muster_worker.launchers.base import ProcessSpec
from muster_worker.launchers.commands import build_user_command, build_wrapper_command
from muster_worker.launchers.environment import NodeContext
from muster_worker.launchers.launch import LaunchFailure, StartedProcess, describe_failure, start_process
from muster_worker.mpi import ipv4_only
from muster_worker.mpi.environment import build_mpirun_environment, build_world
from muster_worker.mpi.implementations import (
    PROGRAM,
    build_launch_command,
    has_same_options,
    is_user_mpirun,
    parse_implementation,
)
from muster_worker.network.interfaces import list_interfaces
from muster_worker.rank.child import NOT_EXECUTABLE

VERSION_SECONDS = 20.0
"""Time limit for `mpirun --version`. Intel's is slow if its settings are in a network folder."""


def start_mpirun(
    context: NodeContext, base_environment: Mapping[str, str], master: str
) -> Union[StartedProcess, LaunchFailure]:
    """Start mpirun from node 0's main thread. `master` is torch.distributed's rendezvous, ADDRESS:PORT."""
    program = context.plan.command[0] if is_user_mpirun(context.plan) else PROGRAM
    name = os.path.basename(program)
    try:
        command, environment = build_mpirun_command(context, base_environment, master)
        return start_process(ProcessSpec(name, command, environment))
    except OSError as error:
        return describe_failure(name, program, error)
    except ValueError as error:
        return LaunchFailure(name, NOT_EXECUTABLE, EndReason.COMMAND_NOT_EXECUTABLE, str(error))


def build_mpirun_command(
    context: NodeContext, base_environment: Mapping[str, str], master: str
) -> Tuple[Sequence[str], Mapping[str, str]]:
    """Return the command and environment of mpirun. `master` is torch.distributed's rendezvous, ADDRESS:PORT.

    Raises `OSError` without an mpirun, and `ValueError` for an unknown or unexpected implementation.
    """
    environment = build_mpirun_environment(base_environment, context, is_root=os.geteuid() == 0)
    command = build_user_command(context.plan)
    if is_user_mpirun(context.plan):
        # For a path, exec reports a missing program.
        if "/" not in command[0]:
            _find_program(command[0], environment)
        return command, environment
    implementation = _find_implementation(context, environment)
    if context.plan.mpi != Mpi.AUTO:
        _check_implementation(implementation, environment)
    rank_command = build_wrapper_command(context, f"--master={master}")
    return build_launch_command(
        implementation, build_world(context), context.plan.launcher_args, rank_command
    ), environment


def find_problem(context: NodeContext, base_environment: Mapping[str, str]) -> Optional[AgentProblem]:
    """Return the reason why mpirun can't reach the other nodes; None if no reason is known."""
    if context.plan.nodes == 1 or not context.network.is_ipv6:
        return None
    environment = build_mpirun_environment(base_environment, context, is_root=os.geteuid() == 0)
    try:
        implementation = _find_implementation(context, environment)
    except (OSError, ValueError):
        return None  # the start of mpirun reports the problem
    return ipv4_only.find_problem(implementation, environment, list_interfaces())


def _find_implementation(context: NodeContext, environment: Mapping[str, str]) -> str:
    """Return the MPI implementation. Raises the same errors as `build_mpirun_command`."""
    if context.plan.mpi != Mpi.AUTO:
        return context.plan.mpi
    return _detect_implementation(context.plan.command[0] if is_user_mpirun(context.plan) else PROGRAM, environment)


def _check_implementation(expected_implementation: str, environment: Mapping[str, str]) -> None:
    """Raise `ValueError` if the options of the image's mpirun differ from those of the expected implementation."""
    program = _find_program(PROGRAM, environment)
    try:
        result = parse_implementation(_read_version(program, environment))
    except ValueError:
        return  # trust the job if mpirun doesn't print its version
    if result is not None and not has_same_options(result, expected_implementation):
        raise ValueError(
            f"spec.launcher.mpi.implementation is {expected_implementation}, but {program} is {result}:"
            f" set {result} or Auto, or put the other one first on PATH in spec.env"
        )


def _detect_implementation(name: str, environment: Mapping[str, str]) -> str:
    program = _find_program(name, environment)
    output = _read_version(program, environment)
    result = parse_implementation(output)
    if result is None:
        first = output.strip().split("\n")[0][:200]
        raise ValueError(
            f"{program} --version prints {first!r}, which is not Open MPI, Intel MPI or MPICH:"
            " set spec.launcher.mpi.implementation to the compatible one"
        )
    return result


def _find_program(name: str, environment: Mapping[str, str]) -> str:
    """Return the path of a program. Raises `FileNotFoundError`."""
    program = shutil.which(name, path=environment.get("PATH", os.defpath))
    if program is None:
        raise FileNotFoundError(
            2, "not found on PATH; spec.launcher.mpi needs an image with Open MPI, MPICH or Intel MPI"
        )
    return program


class _ProgramFile(NamedTuple):
    """A program's file. It compares unequal to another file at the same path."""

    path: str
    device: int
    inode: int
    size: int
    modified_at: int  # ns


def _read_version(program: str, environment: Mapping[str, str]) -> str:
    """Return the output of `program --version`. Raises `OSError` and `ValueError`."""
    status = os.stat(program)
    file = _ProgramFile(program, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    return _run_version_option(file, tuple(environment.items()))


@lru_cache(maxsize=1)  # each attempt asks again, and Open MPI 5 needs 30 ms for the answer
def _run_version_option(program: _ProgramFile, environment: Tuple[Tuple[str, str], ...]) -> str:
    try:
        completed = subprocess.run(
            (program.path, "--version"),
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=VERSION_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"{program.path} --version did not finish in {VERSION_SECONDS:.0f} s") from None
    return completed.stdout.decode("utf-8", "replace")
