"""What happens inside a rank's Python before its program starts. `site/sitecustomize.py` calls it.

Only the rank's own process is hooked: the first Python that claims the rank's progress file. Its child processes see
an environment without the hook, and a forked child stops writing.
"""

from __future__ import annotations

import os
import sys

from muster_worker.rank import hook_environment, optimizer_steps, progress_file, stack_signal, user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping


def enter(archive: str) -> None:
    """Claim the rank's progress file, if there is one, and start counting. `archive` is the agent's zipapp."""
    environment = dict(os.environ)
    node_scope = environment.get(hook_environment.HOOK, "").startswith(hook_environment.SCOPE_NODE)
    if node_scope and _is_rank(environment):
        _continue_in_wrapper(environment, archive)
    if not node_scope:  # in a node's command the ranks are still to come: they need the hook's variables
        restored = hook_environment.without_hook(environment, archive)
        for name in (hook_environment.HOOK, hook_environment.PROGRESS, hook_environment.PYTHONPATH):
            if name in restored:
                os.environ[name] = restored[name]
            else:
                os.environ.pop(name, None)
    path = environment.get(hook_environment.PROGRESS)
    writer = progress_file.claim(path) if path else None
    if path is None or writer is None:
        return
    counter = optimizer_steps.install(writer)
    user.start(writer)
    os.register_at_fork(after_in_child=counter.stop)
    os.register_at_fork(after_in_child=user.stop)
    stack_signal.install(writer, path + stack_signal.SUFFIX)


def _is_rank(environment: Mapping[str, str]) -> bool:
    return ("RANK" in environment and "LOCAL_RANK" in environment) or _is_mpi_rank(environment)


def _is_mpi_rank(environment: Mapping[str, str]) -> bool:
    if not any(name in environment for name in hook_environment.MPI_NODE_FILES):
        return False
    from muster_worker.mpi import rank_start

    return rank_start.is_rank(environment)


def _continue_in_wrapper(environment: Mapping[str, str], archive: str) -> None:
    """Become a rank's wrapper that starts this same program. Returns only when that can't be done.

    A launcher of the user's own started us without one. From inside a process its exit code can't be known; whoever
    waits for it knows.
    """
    if _is_mpi_rank(environment):  # mpirun itself is told nothing that is right on one node only
        from muster_worker.mpi import node_file

        environment = {**environment, **node_file.read(environment)}
    python = environment.get("MUSTER_PYTHON")
    if not python or not sys.executable:
        return
    with open("/proc/self/cmdline", "rb") as file:
        arguments = [os.fsdecode(argument) for argument in file.read().split(b"\0")[1:-1]]
    wrapper = [python, "-I", "-S", archive, "rank", "--attached", "--", sys.executable]
    # the rank's scope from now on: should the wrapper not find the agent, nobody tries again
    attached = hook_environment.with_hook(environment, archive, hook_environment.SCOPE_RANK)
    os.execve(python, wrapper + arguments, attached)
