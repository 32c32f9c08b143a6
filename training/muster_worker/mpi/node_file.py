"""The node file: a node's own variables for ranks that mpirun's daemons start.

mpirun may send node 0's environment to all ranks, so values that differ between nodes must not be in it. Each rank's
wrapper reads them from its node's file. The format is the kernel's, which is fast to parse.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Mapping

NODE_FILE_VARIABLE = "MUSTER_NODE_FILE"
"""The variable with the file's path. It is not set for mpirun, so that mpirun can't send it to other nodes."""

FIRST_NODE_FILE_VARIABLE = "MUSTER_FIRST_NODE_FILE"
"""The variable with the path of node 0's file. mpirun and the ranks that it starts without a daemon have it."""

NODES_VARIABLE = "MUSTER_NODES"
PROCS_PER_NODE_VARIABLE = "MUSTER_PROCS_PER_NODE"
"""The variables with the job's world size."""

NODE_VARIABLE = "MUSTER_NODE"
"""The variable with this node's rank."""

_MUSTER_PREFIX = "MUSTER_"


def get_path(run: str) -> str:
    """Return the path of a node's file in its run folder."""
    return os.path.join(run, "node.env")


def write(run: str, variables: Mapping[str, str]) -> None:
    """Write the file, readable by this user only. Raises `OSError`."""
    data = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in sorted(variables.items()))
    descriptor = os.open(get_path(run), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def read(environment: Mapping[str, str]) -> Dict[str, str]:
    """Return the node's variables for a process with this environment. Raises `OSError` or `KeyError`."""
    with open(
        environment[NODE_FILE_VARIABLE] if NODE_FILE_VARIABLE in environment else environment[FIRST_NODE_FILE_VARIABLE],
        "rb",
    ) as file:
        entries = file.read().split(b"\0")[:-1]
    return dict(os.fsdecode(entry).split("=", 1) for entry in entries)


def merge(environment: Mapping[str, str], node: Mapping[str, str]) -> Dict[str, str]:
    """Return a rank's environment. `environment` overrides the node's variables, except muster's own."""
    result = {**node, **environment}
    result.update({name: value for name, value in node.items() if name.startswith(_MUSTER_PREFIX)})
    return result
