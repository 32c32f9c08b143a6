"""The node file: a node's own variables for ranks that mpirun's daemons start.

mpirun may send node 0's environment to all ranks, so values that differ between nodes must not be in it. Each rank's
wrapper reads them from its node's file. The format is the kernel's, which is fast to parse.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Mapping

HERE = "MUSTER_NODE_FILE"
"""Path of the file. Set only for processes that node 0's mpirun starts through the agent, so no mpirun sends it on."""

FIRST = "MUSTER_FIRST_NODE_FILE"
"""Path of node 0's file. Set for mpirun itself, and thus for the ranks that it starts without a daemon."""

NODES = "MUSTER_NODES"
PROCS_PER_NODE = "MUSTER_PROCS_PER_NODE"
"""The job's world size."""

NODE = "MUSTER_NODE"
"""This node's rank."""

_MUSTER_PREFIX = "MUSTER_"


def path(run: str) -> str:
    """The path of a node's file in its run folder."""
    return os.path.join(run, "node.env")


def write(run: str, variables: Mapping[str, str]) -> None:
    """Write the file, readable by this user only. Raises `OSError`."""
    data = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in sorted(variables.items()))
    descriptor = os.open(path(run), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def read(environment: Mapping[str, str]) -> Dict[str, str]:
    """The node's variables for a process with this environment. Raises `OSError` or `KeyError`."""
    with open(environment[HERE] if HERE in environment else environment[FIRST], "rb") as file:
        entries = file.read().split(b"\0")[:-1]
    return dict(os.fsdecode(entry).split("=", 1) for entry in entries)


def merged(environment: Mapping[str, str], node: Mapping[str, str]) -> Dict[str, str]:
    """A rank's environment: `environment` over the node's variables, but muster's own always from the node."""
    result = {**node, **environment}
    result.update({name: value for name, value in node.items() if name.startswith(_MUSTER_PREFIX)})
    return result
