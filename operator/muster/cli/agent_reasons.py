"""Why the agent sets a variable, and why it starts a launcher with an option; one answer for each, and no default."""

from __future__ import annotations

from muster_worker.launchers.registry import find_launcher
from muster_worker.network.check_figures import CHECK_SECONDS
from muster_worker.network.library_interfaces import OF_LAUNCHERS, OF_RANKS

_OWN = ("muster", "the rank's wrapper finds its agent by it")
_HOOK = ("muster", "counts the steps of a Python rank; gone from its environment before your first line")
_SAGEMAKER = ("muster", "what SageMaker tells a script, so that its scripts run unchanged")

_VARIABLES = {
    "PYTHONUNBUFFERED": ("muster", "a rank's last words would be lost in a buffer when a signal ends it"),
    "OMP_NUM_THREADS": ("agent", "the node's cores are shared among its ranks; all taking all slows all down"),
    "MUSTER_ATTEMPT": ("agent", "how often the ranks have been told to start: status.attempt"),
    "MUSTER_AGENT_SOCKET": _OWN,
    "MUSTER_ARCHIVE": _OWN,
    "MUSTER_PYTHON": _OWN,
    "MUSTER_RUN_DIR": _OWN,
    "MUSTER_CHECKPOINT_DIR": ("spec.checkpoint", "where snapshots go and are resumed from"),
    "MUSTER_HOOK": _HOOK,
    "PYTHONPATH": _HOOK,
    "SM_HPS": ("spec.hyperparameters", "all of them, as SageMaker gives them"),
    "SM_USER_ARGS": ("spec.hyperparameters", "as words of a command line, as SageMaker gives them"),
    "SM_CHANNELS": ("spec.inputs", "the names of the channels, as SageMaker gives them"),
    "SM_INPUT_DATA_CONFIG": ("spec.inputs", "what SageMaker says of the channels"),
}

_INTERFACES = {
    setting.name: ("spec.network.interface", f"{setting.why} ({setting.source})")
    for setting in (*OF_RANKS, *OF_LAUNCHERS)
}

_BEGINNINGS = (
    ("SM_HP_", ("spec.hyperparameters", "one of them, as SageMaker gives it")),
    ("SM_CHANNEL_", ("spec.inputs", "the channel's folder, as SageMaker gives it")),
    ("SM_", _SAGEMAKER),
)

_PARTS = {
    "network check": ("spec.network.check", "a node that slows all others is named before hours are lost"),
    "wrapper": ("muster", "sees each rank's start, exit code, signal and last lines"),
    "arguments": ("spec.hyperparameters", "appended to spec.command, as SageMaker does"),
}


CHECK_VALUE = f"before the ranks start, at most {CHECK_SECONDS:.0f} s"
"""How a network check shows among the parts of a launch."""


def variable_reason(launcher: str, name: str) -> tuple[str, str]:
    """Where a variable's value comes from, and why it is set. Raises `KeyError` for one that the agent never sets."""
    for beginning, reason in _BEGINNINGS:
        if name not in _VARIABLES and name.startswith(beginning):
            return reason
    return {**_VARIABLES, **_INTERFACES, **find_launcher(launcher).variables}[name]


def part_reason(launcher: str, part: str) -> tuple[str, str]:
    """The same of a part of a node's command. Raises `KeyError` for one that muster never adds."""
    return {**_PARTS, **find_launcher(launcher).options}[part]
