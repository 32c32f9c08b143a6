"""A node's own variables as a file, for ranks that somebody else starts: mpirun's daemons, with what they were told.

An mpirun may send node 0's environment to all ranks. What differs between nodes must not travel there: each rank's
wrapper takes it from its own node's file. Written as the kernel writes an environment, so that reading costs nothing.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Mapping

HERE = "MUSTER_NODE_FILE"
"""Names the file. Set only for what node 0's mpirun has started by the agent, so that no mpirun sends it on."""

FIRST = "MUSTER_FIRST_NODE_FILE"
"""Names node 0's: set for mpirun itself, and so for the ranks that it starts without a daemon, beside it."""

NODES = "MUSTER_NODES"
PROCS_PER_NODE = "MUSTER_PROCS_PER_NODE"
"""The world that the job asks for."""

NODE = "MUSTER_NODE"
"""Which of its nodes this one is, from 0."""

_OURS = "MUSTER_"


def path(run: str) -> str:
    """Where a node's file is, by its run folder."""
    return os.path.join(run, "node.env")


def write(run: str, variables: Mapping[str, str]) -> None:
    """Write it, for this user alone. Raises `OSError`."""
    data = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in sorted(variables.items()))
    descriptor = os.open(path(run), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def read(environment: Mapping[str, str]) -> Dict[str, str]:
    """The variables of the node that a process with this environment is on. Raises `OSError` or `KeyError`."""
    with open(environment[HERE] if HERE in environment else environment[FIRST], "rb") as file:
        entries = file.read().split(b"\0")[:-1]
    return dict(os.fsdecode(entry).split("=", 1) for entry in entries)


def merged(environment: Mapping[str, str], node: Mapping[str, str]) -> Dict[str, str]:
    """What a rank sees: what it was given, and its node's. The owner's word stands; muster's is the node's own."""
    result = {**node, **environment}
    result.update({name: value for name, value in node.items() if name.startswith(_OURS)})
    return result
