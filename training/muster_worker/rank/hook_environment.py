"""The environment variables that load the Python hook in a rank's process. Pure.

`MUSTER_HOOK` is `<scope>:set` or `<scope>:unset`. The scope is `rank`, or `node` for a node's command that may start
ranks. The second part tells whether the user had set PYTHONPATH. PYTHONPATH itself doesn't show this, because
`add_hook` gives the same result for an empty PYTHONPATH and for an unset one.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Mapping

PYTHONPATH = "PYTHONPATH"
HOOK = "MUSTER_HOOK"
PROGRESS = "MUSTER_PROGRESS"
FORK_SERVER = "MUSTER_FORK_SERVER"
"""The path of the fork server's socket, if the node has a fork server."""

NAMES = (HOOK, PROGRESS, PYTHONPATH, FORK_SERVER)

MPI_NODE_FILE_VARIABLES = ("MUSTER_NODE_FILE", "MUSTER_FIRST_NODE_FILE")
"""Variables with the paths of MPI's node files (`mpi/node_file.py`). A rank without them imports no MPI modules."""

SCOPE_RANK = "rank"
SCOPE_NODE = "node"

SITE_IN_ARCHIVE = "/muster_worker/site"
"""The folder in the agent's archive that contains only the hook's `sitecustomize`."""


def add_hook(environment: Mapping[str, str], archive: str, scope: str) -> Dict[str, str]:
    """Put the hook's folder first on PYTHONPATH. `archive` is the absolute path of the agent's zipapp."""
    site = archive + SITE_IN_ARCHIVE
    user_pythonpath = environment.get(PYTHONPATH)
    if user_pythonpath is not None and site in user_pythonpath.split(":"):
        pythonpath_state = environment.get(HOOK, ":set").partition(":")[2]  # an outer wrapper has added it
        return {**environment, HOOK: f"{scope}:{pythonpath_state}"}
    return {
        **environment,
        HOOK: f"{scope}:{'unset' if user_pythonpath is None else 'set'}",
        PYTHONPATH: f"{site}:{user_pythonpath}" if user_pythonpath else site,
    }


def remove_hook(environment: Mapping[str, str], archive: str) -> Dict[str, str]:
    """Remove the variables that `add_hook` and the wrapper add."""
    result = {name: value for name, value in environment.items() if name not in NAMES}
    if PYTHONPATH in environment:
        site = archive + SITE_IN_ARCHIVE
        user_pythonpath = ":".join(folder for folder in environment[PYTHONPATH].split(":") if folder != site)
        if user_pythonpath or not environment.get(HOOK, "").endswith(":unset"):
            result[PYTHONPATH] = user_pythonpath
    return result
