"""Why a rank has to start plainly: what makes it differ from a process that the fork server forks."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from importlib.machinery import PathFinder

from muster_worker.fork_server import request
from muster_worker.fork_server.command import parse_command
from muster_worker.fork_server.variables import find_difference, find_moved_code
from muster_worker.rank.hook_environment import without_hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Optional, Sequence


@dataclass(frozen=True)
class ServerState:
    """A fork server's variables, its Python's options, what its imports printed, and why it must not fork, if so.

    `adds_locale`: Python has added LC_CTYPE to its variables.
    """

    environment: Dict[str, str]
    options: Sequence[str]
    printed: bytes
    refusal: Optional[str]
    adds_locale: bool


def find_obstacle(asked: request.Request, folder: str, server: ServerState) -> Optional[str]:
    """Return why this process can't become the rank, whose working directory is `folder`; None if it can."""
    return _find_in_command(asked, folder, server) or _find_in_surroundings(asked, server)


def _find_in_command(asked: request.Request, folder: str, server: ServerState) -> Optional[str]:
    parsed = parse_command(asked.command)
    if isinstance(parsed, str):
        return parsed
    python = shutil.which(parsed.python, path=asked.variables.get("PATH", os.defpath)) or ""
    if os.path.normpath(os.path.join(folder, python)) != os.path.normpath(sys.executable):
        return f"{parsed.python} is another Python than the fork server's"
    # torchrun does the same with and without -u.
    options = [option for option in server.options if not parsed.module or option != "-u"]
    if list(parsed.options) != options:
        return "the options of Python differ from the fork server's"
    if parsed.script and not os.path.isfile(os.path.join(folder, parsed.script)):
        return f"there is no file {parsed.script}"
    if getattr(sys.flags, "safe_path", False):
        return None
    own = os.path.dirname(os.path.realpath(os.path.join(folder, parsed.script))) if parsed.script else folder
    return _find_hidden_module(own)


def _find_hidden_module(folder: str) -> Optional[str]:
    """Find an imported module in whose place the rank would import one of `folder`, its first on sys.path."""
    try:
        names = {entry.partition(".")[0] for entry in os.listdir(folder)}
    except OSError:
        return None
    for name in sorted(names.intersection(sys.modules) - {"__main__", "muster_worker", "sitecustomize"}):
        spec = PathFinder.find_spec(name, [folder])
        own = None if spec is None else spec.origin
        imported = getattr(sys.modules[name], "__file__", None)
        if own is not None and imported is not None and os.path.realpath(own) != os.path.realpath(imported):
            return f"{own} has the name of a module that torch may import"
    return None


def _find_in_surroundings(asked: request.Request, server: ServerState) -> Optional[str]:
    variables = own_variables(asked)
    moved = find_moved_code(server.environment, variables)
    if moved is not None:
        obstacle = _find_imported_from(moved[0]) or _find_hidden_module(moved[1])
        if obstacle is not None:
            return obstacle
        variables["PYTHONPATH"] = server.environment["PYTHONPATH"]
    name = find_difference(server.environment, variables)
    if name is not None:
        return f"variable {name} differs from the fork server's"
    if asked.places != request.places():
        return "it runs as another user or in another namespace"
    # torch itself sets this in a process that was forked after the first use of a GPU
    is_in_bad_fork = getattr(sys.modules.get("torch.cuda"), "_is_in_bad_fork", None)
    if is_in_bad_fork is not None and is_in_bad_fork():
        return "an import used a GPU, which a forked process can't use any more"
    return None


def _find_imported_from(folder: str) -> Optional[str]:
    """Find an imported module of a folder whose code was replaced."""
    for name, module in sorted(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and os.path.realpath(path).startswith(os.path.join(os.path.realpath(folder), "")):
            return f"an import has loaded {name} from the job's own code"
    return None


def own_variables(asked: request.Request) -> Dict[str, str]:
    """The variables of the rank without those of muster's hook."""
    variables = asked.variables
    archive = variables.get("MUSTER_ARCHIVE")
    return variables if archive is None else without_hook(variables, archive)
