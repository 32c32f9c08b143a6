"""The hook in a rank's Python. `site/sitecustomize.py` calls it before the rank's program starts.

It hooks only the rank's own process, which is the first Python that claims the rank's progress file. Child processes
get an environment without the hook. A forked child stops writing to the file.

Each rank waits for these imports, so the hook imports only what every rank needs. What the training script may use
starts when the script imports it (`progress_file.start_in_rank`), and counting starts with torch.
"""

from __future__ import annotations

import os
import sys

from muster_worker.rank import hook_environment, progress_file, raised_error, stack_signal, torch_import

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping


def install(archive: str) -> None:
    """Claim the rank's progress file, if there is one, and start counting steps. `archive` is the agent's zipapp."""
    environment = dict(os.environ)
    is_node_scope = environment.get(hook_environment.HOOK, "").startswith(hook_environment.SCOPE_NODE)
    if is_node_scope and _is_rank(environment):
        _exec_wrapper(environment, archive)
    if not is_node_scope:  # A node's command keeps the hook's variables, because it starts the ranks.
        user_environment = hook_environment.remove_hook(environment, archive)
        for name in hook_environment.NAMES:
            if name in user_environment:
                os.environ[name] = user_environment[name]
            else:
                os.environ.pop(name, None)
    path = environment.get(hook_environment.PROGRESS)
    writer = progress_file.claim(path) if path else None
    if path is None or writer is None:
        return
    progress_file.set_own_file(writer, path)
    torch_import.watch(writer, path)
    raised_error.install(writer)
    stack_signal.install(writer, path + stack_signal.SUFFIX)


def _is_rank(environment: Mapping[str, str]) -> bool:
    return ("RANK" in environment and "LOCAL_RANK" in environment) or _is_mpi_rank(environment)


def _is_mpi_rank(environment: Mapping[str, str]) -> bool:
    if not any(name in environment for name in hook_environment.MPI_NODE_FILE_VARIABLES):
        return False
    from muster_worker.mpi import rank_start

    return rank_start.is_rank(environment)


def _exec_wrapper(environment: Mapping[str, str], archive: str) -> None:
    """Replace this process with a rank's wrapper that starts the same program. Returns only if that is impossible.

    A user's own launcher has started this process without a wrapper. Only a parent can read the rank's exit status.
    """
    if _is_mpi_rank(environment):  # mpirun's environment has no node-specific values
        from muster_worker.mpi import node_file

        environment = {**environment, **node_file.read(environment)}
    python = environment.get("MUSTER_PYTHON")
    if not python or not sys.executable:
        return
    with open("/proc/self/cmdline", "rb") as file:
        arguments = [os.fsdecode(argument) for argument in file.read().split(b"\0")[1:-1]]
    wrapper = [python, "-I", "-S", archive, "rank", "--attached", "--", sys.executable]
    # Change the scope, so that the program is not wrapped again if the wrapper can't reach the agent.
    hooked_environment = hook_environment.add_hook(environment, archive, hook_environment.SCOPE_RANK)
    os.execve(python, wrapper + arguments, hooked_environment)
