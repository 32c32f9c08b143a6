"""Compare the environment variables of a rank with those of the fork server that would fork it. Pure."""

from __future__ import annotations

from muster_worker.contract.rendezvous import is_rendezvous_variable
from muster_worker.rank import trainer_variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping, Optional, Tuple

_READ_LATER = (
    *("CUDA_VISIBLE_DEVICES", "GROUP_NAME", "OLDPWD", "PWD", "SHLVL", "_", "TOKENIZERS_PARALLELISM"),
    "TP_SOCKET_IFNAME",
    # Each attempt has another server for the progress of its rank 0.
    *trainer_variables.NAMES,
    *trainer_variables.NO_PROXY,
)
_READ_LATER_PREFIXES = ("FI_", "GLOO_", "NCCL_", "SM_", "TORCH_NCCL_", "WANDB_")
"""Variables that the import of torch does not read. Scripts read them, or libraries when ranks connect."""


def find_difference(fork_server: Mapping[str, str], rank: Mapping[str, str]) -> Optional[str]:
    """Return the first variable that an import may have read and whose value differs in the rank; None if all agree."""
    for name in sorted({*fork_server, *rank}):
        if fork_server.get(name) != rank.get(name) and not is_read_after_imports(name):
            return name
    return None


def find_moved_code(fork_server: Mapping[str, str], rank: Mapping[str, str]) -> Optional[Tuple[str, str]]:
    """Return the old and the new folder of the code if only the first folders of both PYTHONPATHs differ."""
    old_folder, _, old_rest = fork_server.get("PYTHONPATH", "").partition(":")
    new_folder, _, new_rest = rank.get("PYTHONPATH", "").partition(":")
    has_moved = old_folder != new_folder and old_rest == new_rest
    return (old_folder, new_folder) if has_moved and old_folder.startswith("/") and new_folder.startswith("/") else None


def is_read_after_imports(name: str) -> bool:
    """Whether a variable is read only after the imports."""
    return is_rendezvous_variable(name) or name in _READ_LATER or name.startswith(_READ_LATER_PREFIXES)
