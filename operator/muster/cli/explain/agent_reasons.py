"""The reason for each variable that the agent sets, and for each option that it passes to a launcher."""

from __future__ import annotations

from muster_worker.launchers.registry import find_launcher
from muster_worker.network.check_results import CHECK_SECONDS
from muster_worker.network.library_interfaces import LAUNCHER_SETTINGS, RANK_SETTINGS
from muster_worker.rank import trainer_variables

_FOR_WRAPPER = ("muster", "the rank's wrapper needs this to find the agent")
_HOOK = ("muster", "counts the steps of a Python rank; muster removes it before the rank runs your code")
_SAGEMAKER = ("muster", "SageMaker's variable, so that scripts for SageMaker run unchanged")

_TRAINER = ("muster", "rank 0 only: Transformers and the Kubeflow SDK report their progress to the agent")

_VARIABLES = {
    "PYTHONUNBUFFERED": ("muster", "without it, the last lines of a rank that a signal ends would be lost"),
    "OMP_NUM_THREADS": ("agent", "the node's cores divided by its ranks: more threads than cores slow down all ranks"),
    "MUSTER_ATTEMPT": ("agent", "the number of times that muster has started the ranks: status.attempt"),
    "MUSTER_AGENT_SOCKET": _FOR_WRAPPER,
    "MUSTER_ARCHIVE": _FOR_WRAPPER,
    "MUSTER_PYTHON": _FOR_WRAPPER,
    "MUSTER_RUN_DIR": _FOR_WRAPPER,
    "MUSTER_CHECKPOINT_DIR": ("spec.checkpoint", "the folder for checkpoints, from which ranks resume"),
    **dict.fromkeys(trainer_variables.NAMES, _TRAINER),
    **dict.fromkeys(trainer_variables.NO_PROXY, ("muster", "rank 0's progress must not go through the proxy")),
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
    "network check": ("spec.network.check", "detects nodes whose network would slow down all ranks"),
    "wrapper": ("muster", "reports each rank's start, exit code, signal and last lines"),
    "arguments": ("spec.hyperparameters", "appended to spec.command, as SageMaker does"),
}


CHECK_VALUE = f"before the ranks start, at most {CHECK_SECONDS:.0f} s"
"""The value that `muster explain` shows for the network check."""


def find_variable_reason(launcher: str, name: str) -> tuple[str, str]:
    """Return a variable's source and reason. Raises `KeyError` for a variable that the agent never sets."""
    for beginning, reason in _PREFIXES:
        if name not in _VARIABLES and name.startswith(beginning):
            return reason
    return {**_VARIABLES, **_INTERFACES, **find_launcher(launcher).variables}[name]


def find_part_reason(launcher: str, part: str) -> tuple[str, str]:
    """Return the source of a part of a node's command, and the part's reason. Raises `KeyError` for an unknown part."""
    return {**_PARTS, **find_launcher(launcher).options}[part]
