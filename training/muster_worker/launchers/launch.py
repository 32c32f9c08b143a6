"""Starts the processes of an attempt on this node."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import List, Mapping, Optional, Tuple

from muster_worker.contract.schema import EndReason
from muster_worker.launchers.base import Start
from muster_worker.launchers.environment import Place, node_environment
from muster_worker.launchers.registry import find_launcher
from muster_worker.machine import processes
from muster_worker.rank.child import NOT_EXECUTABLE, NOT_FOUND


@dataclass(frozen=True)
class Launched:
    """A started process."""

    start: Start
    pid: int
    outputs: Tuple[int, int]  # read ends of its standard output and standard error


@dataclass(frozen=True)
class LaunchRefused:
    """The launcher's command can't be executed."""

    name: str
    exit_code: int
    reason: str
    message: str


def launch(place: Place, base: Mapping[str, str]) -> Tuple[Tuple[Launched, ...], Optional[LaunchRefused]]:
    """Start the node's processes from the main thread. Returns them, and the first one that failed to start.

    Raises `OSError` if their files can't be written.
    """
    launcher = find_launcher(place.plan.launcher)
    launcher.prepare(place)
    environment = node_environment(base, place)
    path = environment.get("PATH", os.defpath)
    started: List[Launched] = []
    for start in launcher.starts(place, environment, lambda name: shutil.which(name, path=path)):
        try:
            started.append(execute(start))
        except OSError as error:
            return tuple(started), refusal(start.name, start.command[0], error)
    return tuple(started), None


def execute(start: Start) -> Launched:
    """Start a process from the main thread. Raises `OSError`."""
    process = processes.start(start.command, start.environment)
    return Launched(start, process.pid, processes.take_outputs(process))


def refusal(name: str, program: str, error: OSError) -> LaunchRefused:
    """Describe why `program` did not start, for a report."""
    message = f"command {program!r}: {error.strerror}"
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return LaunchRefused(name, NOT_FOUND, EndReason.COMMAND_NOT_FOUND, message)
    return LaunchRefused(name, NOT_EXECUTABLE, EndReason.COMMAND_NOT_EXECUTABLE, message)
