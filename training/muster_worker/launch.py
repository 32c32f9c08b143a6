"""Starts what an incarnation consists of on this node: torchrun, the node's command, or the ranks themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from muster_worker import hook_environment, launchers, processes, python_exec
from muster_worker.child import NOT_EXECUTABLE, NOT_FOUND
from muster_worker.contract import EndReason, Launcher
from muster_worker.environment import Place, direct_environment, node_environment, per_node_environment


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


def launch(
    place: Place, incarnation: int, base: Mapping[str, str]
) -> Tuple[Tuple[Launched, ...], Optional[LaunchRefused]]:
    """Start the node's share of an incarnation, on the main thread; what was started, and what could not be."""
    environment = node_environment(base, place)
    started: List[Launched] = []
    for name, rank, command, variables in _commands(place, incarnation, environment):
        try:
            process = processes.start(command, variables)
        except OSError as error:
            return tuple(started), _refusal(name, command[0], error)
        started.append(Launched(name, process.pid, _take_outputs(process), rank))
    return tuple(started), None


def _commands(
    place: Place, incarnation: int, environment: Dict[str, str]
) -> List[Tuple[str, Optional[int], Sequence[str], Mapping[str, str]]]:
    plan = place.plan
    if plan.launcher == Launcher.TORCHRUN:
        path = environment.get("PATH", os.defpath)
        command = launchers.torchrun(place, incarnation, lambda name: shutil.which(name, path=path))
        return [("torchrun", None, command, environment)]
    if plan.launcher == Launcher.DIRECT:
        first = place.node * plan.procs_per_node
        return [
            (
                f"rank {first + local}",
                first + local,
                launchers.wrapper(place),
                direct_environment(environment, place, local),
            )
            for local in range(plan.procs_per_node)
        ]
    shim = python_exec.write_python_exec(place.run, place.archive, place.python)
    variables = per_node_environment(environment, place, shim)
    if plan.procs_per_node == 1:
        return [("command", None, launchers.wrapper(place), variables)]
    # launchers that ignore PYTHON_EXEC are seen by the hook in the ranks that they start
    variables = hook_environment.with_hook(variables, place.archive, hook_environment.SCOPE_NODE)
    return [("command", None, launchers.user_command(plan), variables)]


def _take_outputs(process: subprocess.Popen[bytes]) -> Tuple[int, int]:
    """The process' pipes as plain descriptors; it is reaped by its pid, so that nobody needs the object any more."""
    if process.stdout is None or process.stderr is None:
        raise AssertionError("started with both outputs as pipes")
    outputs = os.dup(process.stdout.fileno()), os.dup(process.stderr.fileno())
    process.stdout.close()
    process.stderr.close()
    process.returncode = 0  # silences its own attempts to reap
    return outputs


def _refusal(name: str, program: str, error: OSError) -> LaunchRefused:
    message = f"command {program!r}: {error.strerror}"
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return LaunchRefused(name, NOT_FOUND, EndReason.COMMAND_NOT_FOUND, message)
    return LaunchRefused(name, NOT_EXECUTABLE, EndReason.COMMAND_NOT_EXECUTABLE, message)
