"""Find out why the fork server must not fork a rank: it would differ from a rank started with fork and exec."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from importlib.machinery import PathFinder

from muster_worker.fork_server import request
from muster_worker.fork_server.command import parse_command
from muster_worker.fork_server.variables import find_difference, find_moved_code
from muster_worker.rank.hook_environment import remove_hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Optional, Sequence


@dataclass(frozen=True)
class ServerState:
    """The fork server's environment variables, the options of its Python, and the output of its imports.

    `refusal` is the reason why the fork server must not fork any rank, if there is one. `python_set_lc_ctype` is true
    if Python has added LC_CTYPE to the variables at its start.
    """

    environment: Dict[str, str]
    options: Sequence[str]
    import_output: bytes
    refusal: Optional[str]
    python_set_lc_ctype: bool


def find_refusal(rank_request: request.Request, folder: str, server: ServerState) -> Optional[str]:
    """Return why this process can't become the rank, or None. `folder` is the rank's working directory."""
    return _find_refusal_of_command(rank_request, folder, server) or _find_refusal_of_process(rank_request, server)


def _find_refusal_of_command(rank_request: request.Request, folder: str, server: ServerState) -> Optional[str]:
    python_command = parse_command(rank_request.command)
    if isinstance(python_command, str):
        return python_command
    python = shutil.which(python_command.python, path=rank_request.variables.get("PATH", os.defpath)) or ""
    if os.path.normpath(os.path.join(folder, python)) != os.path.normpath(sys.executable):
        return f"{python_command.python} is another Python than the fork server's"
    # `python -m torch.distributed.run` is torchrun itself, which works the same with and without -u.
    options = [option for option in server.options if not python_command.module or option != "-u"]
    if list(python_command.options) != options:
        return "the options of Python differ from the fork server's"
    if python_command.script and not os.path.isfile(os.path.join(folder, python_command.script)):
        return f"there is no file {python_command.script}"
    if getattr(sys.flags, "safe_path", False):
        return None
    script = os.path.realpath(os.path.join(folder, python_command.script))
    return _find_shadowed_module(os.path.dirname(script) if python_command.script else folder)


def _find_shadowed_module(folder: str) -> Optional[str]:
    """Find an imported module that a file in `folder` would shadow in the rank, whose sys.path begins with `folder`."""
    try:
        names = {entry.partition(".")[0] for entry in os.listdir(folder)}
    except OSError:
        return None
    for name in sorted(names.intersection(sys.modules) - {"__main__", "muster_worker", "sitecustomize"}):
        spec = PathFinder.find_spec(name, [folder])
        file = None if spec is None else spec.origin
        imported_file = getattr(sys.modules[name], "__file__", None)
        if file is not None and imported_file is not None and os.path.realpath(file) != os.path.realpath(imported_file):
            return f"{file} has the name of a module that torch may import"
    return None


def _find_refusal_of_process(rank_request: request.Request, server: ServerState) -> Optional[str]:
    variables = remove_hook_variables(rank_request)
    moved_code = find_moved_code(server.environment, variables)
    if moved_code is not None:
        refusal = _find_module_imported_from(moved_code[0]) or _find_shadowed_module(moved_code[1])
        if refusal is not None:
            return refusal
        variables["PYTHONPATH"] = server.environment["PYTHONPATH"]
    name = find_difference(server.environment, variables)
    if name is not None:
        return f"variable {name} differs from the fork server's"
    if rank_request.owner_and_namespaces != request.read_owner_and_namespaces():
        return "it runs as another user or in another namespace"
    # torch itself sets this in a process that was forked after the first use of a GPU
    is_in_bad_fork = getattr(sys.modules.get("torch.cuda"), "_is_in_bad_fork", None)
    if is_in_bad_fork is not None and is_in_bad_fork():
        return "an import used a GPU, which a forked process can't use any more"
    return None


def _find_module_imported_from(folder: str) -> Optional[str]:
    """Find a module that was imported from `folder`."""
    for name, module in sorted(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and os.path.realpath(path).startswith(os.path.join(os.path.realpath(folder), "")):
            return f"an import has loaded {name} from the job's own code"
    return None


def remove_hook_variables(rank_request: request.Request) -> Dict[str, str]:
    """Return the variables of the rank without the variables of muster's hook."""
    variables = rank_request.variables
    archive = variables.get("MUSTER_ARCHIVE")
    return variables if archive is None else remove_hook(variables, archive)
