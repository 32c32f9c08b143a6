"""The environment variables of a run's rendezvous, which no other run's processes may see. Pure.

A job may not set them, and what a shell kept of another run's is removed: a rank that is told another world than its
peers waits for them for ever.
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
"""What tells a process its rank, its world and where its peers are met; torchrun's names and muster's own."""


def is_rendezvous_variable(name: str) -> bool:
    """Whether an environment variable belongs to a run's rendezvous."""
    return name in RENDEZVOUS_VARIABLES or name.startswith(RENDEZVOUS_PREFIXES)
