"""Starts what an attempt consists of on this node: torchrun, mpirun, the node's command, or the ranks."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Sequence, Tuple, Union

from muster_worker.contract.schema import EndReason, Launcher
from muster_worker.launchers import commands, python_exec
from muster_worker.launchers.environment import Place, direct_environment, node_environment, per_node_environment
from muster_worker.machine import processes
from muster_worker.mpi import implementations, mpirun
from muster_worker.rank import hook_environment
from muster_worker.rank.child import NOT_EXECUTABLE, NOT_FOUND


@dataclass(frozen=True)
class Launched:
    """A process that was started. `name` stands before its own lines; `rank` is set when it is a rank's wrapper."""

    name: str
    pid: int
    outputs: Tuple[int, int]  # read ends of its standard output and standard error
    rank: Optional[int] = None


@dataclass(frozen=True)
class LaunchRefused:
    """The launcher can't be executed."""

    name: str
    exit_code: int
    reason: str
    message: str


def launch(place: Place, attempt: int, base: Mapping[str, str]) -> Tuple[Tuple[Launched, ...], Optional[LaunchRefused]]:
    """Start the node's share of an attempt, on the main thread; what was started, and what could not be.

    Of an MPI world that is nothing but on node 0: `start_mpirun`.
    """
    if place.plan.launcher == Launcher.MPI:
        return (), None
    environment = node_environment(base, place)
    started: List[Launched] = []
    for name, rank, command, variables in _commands(place, attempt, environment):
        try:
            process = processes.start(command, variables)
        except OSError as error:
            return tuple(started), _refusal(name, command[0], error)
        started.append(Launched(name, process.pid, processes.take_outputs(process), rank))
    return tuple(started), None


def start_mpirun(place: Place, base: Mapping[str, str], master: str) -> Union[Launched, LaunchRefused]:
    """Start mpirun, on node 0's main thread. `master` is where torch.distributed may meet: ADDRESS:PORT."""
    program = place.plan.command[0] if implementations.is_own_mpirun(place.plan) else implementations.PROGRAM
    name = os.path.basename(program)
    try:
        command, environment = mpirun.mpirun(place, base, master)
        process = processes.start(command, environment)
    except OSError as error:
        return _refusal(name, program, error)
    except ValueError as error:
        return LaunchRefused(name, NOT_EXECUTABLE, EndReason.COMMAND_NOT_EXECUTABLE, str(error))
    return Launched(name, process.pid, processes.take_outputs(process))


def _commands(
    place: Place, attempt: int, environment: Dict[str, str]
) -> List[Tuple[str, Optional[int], Sequence[str], Mapping[str, str]]]:
    plan = place.plan
    if plan.launcher == Launcher.TORCHRUN:
        path = environment.get("PATH", os.defpath)
        command = commands.torchrun(place, attempt, lambda name: shutil.which(name, path=path))
        return [("torchrun", None, command, environment)]
    if plan.launcher == Launcher.DIRECT:
        first = place.node * plan.procs_per_node
        return [
            (
                f"rank {first + local}",
                first + local,
                commands.wrapper(place),
                direct_environment(environment, place, local),
            )
            for local in range(plan.procs_per_node)
        ]
    shim = python_exec.write_python_exec(place.run, place.archive, place.python)
    variables = per_node_environment(environment, place, shim)
    if plan.procs_per_node == 1:
        return [("command", None, commands.wrapper(place), variables)]
    # launchers that ignore PYTHON_EXEC are seen by the hook in the ranks that they start
    variables = hook_environment.with_hook(variables, place.archive, hook_environment.SCOPE_NODE)
    return [("command", None, commands.user_command(plan), variables)]


def _refusal(name: str, program: str, error: OSError) -> LaunchRefused:
    message = f"command {program!r}: {error.strerror}"
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return LaunchRefused(name, NOT_FOUND, EndReason.COMMAND_NOT_FOUND, message)
    return LaunchRefused(name, NOT_EXECUTABLE, EndReason.COMMAND_NOT_EXECUTABLE, message)
