"""Starts the processes of an attempt on this node."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import List, Mapping, Optional, Tuple

from muster_worker.contract.schema import EndReason
from muster_worker.launchers.base import ProcessSpec
from muster_worker.launchers.commands import build_agent_command
from muster_worker.launchers.environment import NodeContext, build_node_environment
from muster_worker.launchers.forked_wrapper import WRAPPERS, WrapperCommand, fork_wrapper
from muster_worker.launchers.registry import find_launcher
from muster_worker.machine import processes
from muster_worker.rank.child import NOT_EXECUTABLE, NOT_FOUND


@dataclass(frozen=True)
class StartedProcess:
    """A started process."""

    spec: ProcessSpec
    pid: int
    outputs: Tuple[int, int]  # read ends of its standard output and standard error


@dataclass(frozen=True)
class LaunchFailure:
    """The launcher's command can't be executed."""

    name: str
    exit_code: int
    reason: str
    message: str


def launch(
    context: NodeContext, base_environment: Mapping[str, str]
) -> Tuple[Tuple[StartedProcess, ...], Optional[LaunchFailure]]:
    """Start the node's processes from the main thread. Stop at the first failure, and return it with the processes.

    Raises `OSError` if the files of the processes can't be written.
    """
    launcher = find_launcher(context.plan.launcher)
    launcher.prepare(context)
    environment = build_node_environment(base_environment, context)
    path = environment.get("PATH", os.defpath)
    started: List[StartedProcess] = []
    for spec in launcher.list_processes(context, environment, lambda name: shutil.which(name, path=path)):
        try:
            started.append(_start(spec, context))
        except OSError as error:
            return tuple(started), describe_failure(spec.name, spec.command[0], error)
    return tuple(started), None


def find_wrapper(spec: ProcessSpec, context: NodeContext) -> Optional[WrapperCommand]:
    """Return the wrapper of a rank or of a launcher that the agent forks; None if the process is another program."""
    command = tuple(spec.command)
    for name in WRAPPERS:
        wrapper = build_agent_command(context, name)
        if command[: len(wrapper)] == wrapper:
            return WrapperCommand(command, command[len(wrapper) :], spec.environment, name)
    return None


def _start(spec: ProcessSpec, context: NodeContext) -> StartedProcess:
    """Start a process from the main thread. Raises `OSError`."""
    wrapper = find_wrapper(spec, context)
    return start_process(spec) if wrapper is None else StartedProcess(spec, *fork_wrapper(wrapper))


def start_process(spec: ProcessSpec) -> StartedProcess:
    """Start a process from the main thread. Raises `OSError`."""
    process = processes.start(spec.command, spec.environment)
    return StartedProcess(spec, process.pid, processes.take_outputs(process))


def describe_failure(name: str, program: str, error: OSError) -> LaunchFailure:
    """Describe why `program` did not start, for a report."""
    message = f"command {program!r}: {error.strerror}"
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return LaunchFailure(name, NOT_FOUND, EndReason.COMMAND_NOT_FOUND, message)
    return LaunchFailure(name, NOT_EXECUTABLE, EndReason.COMMAND_NOT_EXECUTABLE, message)
