"""The variables that bring the Python hook into a rank's process. Pure.

`MUSTER_HOOK` is `<scope>:<memory>`. The scope says whom the environment belongs to: one `rank`, or a `node`'s command
that may start ranks of its own. The memory says whether the user had PYTHONPATH `set` or `unset`: an empty one and none
at all look the same once our folder is in front.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Mapping

PYTHONPATH = "PYTHONPATH"
HOOK = "MUSTER_HOOK"
PROGRESS = "MUSTER_PROGRESS"

MPI_NODE_FILES = ("MUSTER_NODE_FILE", "MUSTER_FIRST_NODE_FILE")
"""`node_file.HERE` and `FIRST`: where neither is, no module that is about MPI needs to be loaded."""

SCOPE_RANK = "rank"
SCOPE_NODE = "node"

SITE_IN_ARCHIVE = "/muster_worker/site"
"""The folder in the agent's archive that holds our `sitecustomize`, and nothing else."""


def with_hook(environment: Mapping[str, str], archive: str, scope: str) -> Dict[str, str]:
    """`environment` with the hook's folder first on PYTHONPATH. `archive` is the agent's, an absolute path."""
    site = archive + SITE_IN_ARCHIVE
    user = environment.get(PYTHONPATH)
    if user is not None and site in user.split(":"):
        memory = environment.get(HOOK, ":set").partition(":")[2]  # an outer wrapper has put it there
        return {**environment, HOOK: f"{scope}:{memory}"}
    return {
        **environment,
        HOOK: f"{scope}:{'unset' if user is None else 'set'}",
        PYTHONPATH: f"{site}:{user}" if user else site,
    }


def without_hook(environment: Mapping[str, str], archive: str) -> Dict[str, str]:
    """`environment` as the user had it: what `with_hook` and the wrapper added is gone."""
    restored = {name: value for name, value in environment.items() if name not in (HOOK, PROGRESS, PYTHONPATH)}
    if PYTHONPATH in environment:
        site = archive + SITE_IN_ARCHIVE
        user = ":".join(folder for folder in environment[PYTHONPATH].split(":") if folder != site)
        if user or not environment.get(HOOK, "").endswith(":unset"):
            restored[PYTHONPATH] = user
    return restored
