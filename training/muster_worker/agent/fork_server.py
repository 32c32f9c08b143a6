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
from muster_worker.launchers.environment import ForkServer, NodeContext, node_environment
from muster_worker.rank.hook_environment import SCOPE_RANK, with_hook

_OF_TORCHRUN = "torch.distributed.launcher.api"
"""The module that torchrun imports. torchrun's own module is missing: Python runs it under the name `__main__`."""

_MAX_WAITING = 128
"""The number of ranks that may wait for the fork server: the maximum of a node. They wait while it imports."""


def start_fork_server(context: NodeContext, base: Mapping[str, str], log: Log) -> Optional[ForkServer]:
    """Start the fork server of a node, if the job has one. Raises `OSError`.

    Call this from the main thread: the fork server ends with it.
    """
    found = _find_modules(context, base, log)
    if found is None:
        return None
    parsed, of_ranks, modules = found
    if not modules:
        return None
    path = os.path.join(context.run_dir, "fork.sock")
    environment = node_environment(base, context)
    pid = spawn(parsed, modules, with_hook(environment, context.archive, SCOPE_RANK), path)
    return ForkServer(pid, path, forks_ranks=bool(of_ranks))


def follow_code(context: NodeContext, base: Mapping[str, str], log: Log) -> NodeContext:
    """Return the context with a fork server for the new code in the working directory. Raises `OSError`.

    A running fork server can be used again, because it has imported no module of the job's code
    (`fork_server/refusals.py` checks that).
    """
    running = context.fork_server
    if running is None:
        return replace(context, fork_server=start_fork_server(context, base, log))
    found = _find_modules(context, base, log)
    return replace(context, fork_server=replace(running, forks_ranks=found is not None and bool(found[1])))


def _find_modules(
    context: NodeContext, base: Mapping[str, str], log: Log
) -> Optional[Tuple[PythonCommand, Sequence[str], Sequence[str]]]:
    """Return the script, the modules for its ranks, and the modules for ranks and launcher; None without a script."""
    parsed = find_script(context.plan)
    if isinstance(parsed, str):
        return None
    sources = imports.read_sources(parsed.script, own_folders(parsed, node_environment(base, context)))
    of_ranks = imports.find_imports(sources)
    change = imports.find_early_change(sources) if of_ranks else None
    if change is not None:
        of_ranks = ()
        log.print_line(f"ranks start without a fork server: {change}; set it in spec.env instead")
    # torchrun itself imports torch, even if its ranks don't.
    of_launcher = (*imports.TORCH[:2], _OF_TORCHRUN) if context.plan.launcher == Launcher.TORCHRUN else ()
    return parsed, of_ranks, tuple(dict.fromkeys((*of_ranks, *of_launcher)))


def spawn(parsed: PythonCommand, modules: Sequence[str], environment: Mapping[str, str], path: str) -> int:
    """Start a fork server that listens at `path`. Returns its pid. Raises `OSError`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        os.chmod(path, 0o600)
        listener.listen(_MAX_WAITING)
        descriptor, options = str(listener.fileno()), parsed.options
        python = shutil.which(parsed.python, path=environment.get("PATH", os.defpath)) or parsed.python
        process = subprocess.Popen(
            [parsed.python, *options, "-c", server.BOOT, descriptor, python, " ".join(options), *modules, server.ROOM],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(listener.fileno(),),
            start_new_session=True,
        )
    process.returncode = 0  # the agent reaps it by its pid
    return process.pid


def own_folders(parsed: PythonCommand, environment: Mapping[str, str]) -> Sequence[str]:
    """Return the folders in which a script finds modules of its own."""
    folders = [os.path.dirname(os.path.realpath(parsed.script))]
    return [*folders, *(folder for folder in environment.get("PYTHONPATH", "").split(":") if folder)]
