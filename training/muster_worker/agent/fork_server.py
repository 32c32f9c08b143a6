"""Starts the fork server: a process that imports the ranks' modules before the ranks start, and forks the ranks."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from dataclasses import replace
from typing import Mapping, Optional, Sequence, Tuple

from muster_worker.agent.log import Log
from muster_worker.contract.schema import Launcher
from muster_worker.fork_server import imports, server
from muster_worker.fork_server.command import PythonCommand
from muster_worker.launchers.commands import find_script
from muster_worker.launchers.environment import ForkServer, NodeContext, build_node_environment
from muster_worker.rank.hook_environment import SCOPE_RANK, add_hook

_TORCHRUN_MODULE = "torch.distributed.launcher.api"
"""The module that torchrun imports first. Don't import torchrun's own module, because Python runs it as `__main__`."""

_LISTEN_BACKLOG = 128
"""The maximum number of ranks of a node. All of them may wait while the fork server imports."""


def start_fork_server(context: NodeContext, base_environment: Mapping[str, str], log: Log) -> Optional[ForkServer]:
    """Start the fork server of a node, if the job has one. Raises `OSError`.

    Call this from the main thread: the fork server ends with it.
    """
    script_and_modules = _find_modules(context, base_environment, log)
    if script_and_modules is None:
        return None
    command, rank_modules, modules = script_and_modules
    if not modules:
        return None
    path = os.path.join(context.run_dir, "fork.sock")
    environment = build_node_environment(base_environment, context)
    spares = (context.plan.procs_per_node if rank_modules else 0) + (context.plan.launcher == Launcher.TORCHRUN)
    pid = start_server(command, modules, add_hook(environment, context.archive, SCOPE_RANK), path, spares=spares)
    return ForkServer(pid, path, forks_ranks=bool(rank_modules))


def update_fork_server(context: NodeContext, base_environment: Mapping[str, str], log: Log) -> NodeContext:
    """Return the context with a fork server for the new code in the working directory. Raises `OSError`.

    A running fork server can be used again, because it has imported no module of the job's code
    (`fork_server/refusals.py` checks that).
    """
    fork_server = context.fork_server
    if fork_server is None:
        return replace(context, fork_server=start_fork_server(context, base_environment, log))
    script_and_modules = _find_modules(context, base_environment, log)
    return replace(
        context,
        fork_server=replace(fork_server, forks_ranks=script_and_modules is not None and bool(script_and_modules[1])),
    )


def _find_modules(
    context: NodeContext, base_environment: Mapping[str, str], log: Log
) -> Optional[Tuple[PythonCommand, Sequence[str], Sequence[str]]]:
    """Return the script, the modules for its ranks, and the modules for ranks and launcher; None without a script."""
    command = find_script(context.plan)
    if isinstance(command, str):
        return None
    sources = imports.read_sources(
        command.script, _list_script_folders(command, build_node_environment(base_environment, context))
    )
    rank_modules = imports.find_imports(sources)
    change = imports.find_early_change(sources) if rank_modules else None
    if change is not None:
        rank_modules = ()
        log.print_line(f"ranks start without a fork server: {change}; set it in spec.env instead")
    # torchrun itself imports torch, even if its ranks don't.
    launcher_modules = (
        (*imports.TORCH_MODULES[:2], _TORCHRUN_MODULE) if context.plan.launcher == Launcher.TORCHRUN else ()
    )
    return command, rank_modules, tuple(dict.fromkeys((*rank_modules, *launcher_modules)))


def start_server(
    command: PythonCommand, modules: Sequence[str], environment: Mapping[str, str], path: str, *, spares: int
) -> int:
    """Start a fork server that listens at `path`, with this number of spares. Returns its pid. Raises `OSError`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        os.chmod(path, 0o600)
        listener.listen(_LISTEN_BACKLOG)
        descriptor, options = str(listener.fileno()), command.options
        python = shutil.which(command.python, path=environment.get("PATH", os.defpath)) or command.python
        process = subprocess.Popen(
            [
                command.python,
                *options,
                "-c",
                server.BOOTSTRAP,
                descriptor,
                str(spares),
                python,
                " ".join(options),
                *modules,
                server.COMMAND_LINE_PADDING,
            ],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(listener.fileno(),),
            start_new_session=True,
        )
    process.returncode = 0  # the agent reaps it by its pid
    return process.pid


def _list_script_folders(command: PythonCommand, environment: Mapping[str, str]) -> Sequence[str]:
    """Return the folders from which a script imports its own modules."""
    folders = [os.path.dirname(os.path.realpath(command.script))]
    return [*folders, *(folder for folder in environment.get("PYTHONPATH", "").split(":") if folder)]
