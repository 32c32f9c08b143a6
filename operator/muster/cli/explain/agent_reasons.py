"""The reason for each variable that the agent sets, and for each option that it passes to a launcher."""

from __future__ import annotations

from muster_worker.launchers.registry import find_launcher
from muster_worker.network.check_results import CHECK_SECONDS
from muster_worker.network.library_interfaces import LAUNCHER_SETTINGS, RANK_SETTINGS

_OWN = ("muster", "the rank's wrapper finds its agent through it")
_HOOK = ("muster", "counts the steps of a Python rank; removed from its environment before your first line")
_SAGEMAKER = ("muster", "SageMaker's variable, so that scripts for SageMaker run unchanged")

_VARIABLES = {
    "PYTHONUNBUFFERED": ("muster", "otherwise a rank's last lines would be lost in a buffer when a signal ends it"),
    "OMP_NUM_THREADS": ("agent", "the node's cores divided by its ranks: more threads than cores slow down all ranks"),
    "MUSTER_ATTEMPT": ("agent", "how often muster has started the ranks: status.attempt"),
    "MUSTER_AGENT_SOCKET": _OWN,
    "MUSTER_ARCHIVE": _OWN,
    "MUSTER_PYTHON": _OWN,
    "MUSTER_RUN_DIR": _OWN,
    "MUSTER_CHECKPOINT_DIR": ("spec.checkpoint", "the folder for checkpoints, from which ranks resume"),
    "MUSTER_HOOK": _HOOK,
    "PYTHONPATH": _HOOK,
    "SM_HPS": ("spec.hyperparameters", "all hyperparameters, as SageMaker sets them"),
    "SM_USER_ARGS": ("spec.hyperparameters", "as command-line arguments, as SageMaker sets them"),
    "SM_CHANNELS": ("spec.inputs", "the names of the channels, as SageMaker sets them"),
    "SM_INPUT_DATA_CONFIG": ("spec.inputs", "a description of the channels, as SageMaker sets it"),
}

_INTERFACES = {
    setting.name: ("spec.network.interface", f"{setting.reason} ({setting.source})")
    for setting in (*RANK_SETTINGS, *LAUNCHER_SETTINGS)
}

_PREFIXES = (
    ("SM_HP_", ("spec.hyperparameters", "one hyperparameter, as SageMaker sets it")),
    ("SM_CHANNEL_", ("spec.inputs", "the channel's folder, as SageMaker sets it")),
    ("SM_", _SAGEMAKER),
)

_PARTS = {
    "network check": ("spec.network.check", "it names a node that would slow down all others"),
    "wrapper": ("muster", "sees each rank's start, exit code, signal and last lines"),
    "arguments": ("spec.hyperparameters", "appended to spec.command, as SageMaker does"),
}


CHECK_VALUE = f"before the ranks start, at most {CHECK_SECONDS:.0f} s"
"""The value shown for the network check."""


def variable_reason(launcher: str, name: str) -> tuple[str, str]:
    """Return a variable's source and reason. Raises `KeyError` for a variable that the agent never sets."""
    for beginning, reason in _PREFIXES:
        if name not in _VARIABLES and name.startswith(beginning):
            return reason
    return {**_VARIABLES, **_INTERFACES, **find_launcher(launcher).variables}[name]


def part_reason(launcher: str, part: str) -> tuple[str, str]:
    """Return the source of a part of a node's command and its reason. Raises `KeyError` for an unknown part."""
    return {**_PARTS, **find_launcher(launcher).options}[part]
