"""The environment variables of a rendezvous. Pure.

A job may not set them, and the agent removes those that it inherits: a rank whose world size differs from its peers'
waits for ever.
"""

from __future__ import annotations

RENDEZVOUS_VARIABLES = (
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    "NODE_RANK",
    "ROLE_NAME",
    "ROLE_RANK",
    "ROLE_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "PYTHON_EXEC",
)
RENDEZVOUS_PREFIXES = ("PET_", "TORCHELASTIC_", "MUSTER_")
"""Variables with the rank, the world size and the master's address: torchrun's names and muster's own."""


def is_rendezvous_variable(name: str) -> bool:
    """Whether an environment variable belongs to a rendezvous."""
    return name in RENDEZVOUS_VARIABLES or name.startswith(RENDEZVOUS_PREFIXES)
