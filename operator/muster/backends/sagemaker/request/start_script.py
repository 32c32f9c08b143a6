"""muster's start script: what runs the command of a job where SageMaker's toolkit can't by itself. Pure."""

import json
from importlib.resources import files

from muster.api.sagemaker_launch import START_SCRIPT, Launch, said_procs
from muster.api.spec import Job, Spec

_SETTINGS = "muster_start.json"


def start_files(job: Job, how: Launch) -> dict[str, bytes]:
    """The script and its settings, by their names."""
    spec = job.spec
    started = spec.launcher.torchrun or spec.launcher.mpi
    settings = {
        "launcher": _launcher(spec, how),
        "args": [] if started is None else list(started.args),
        "procs": said_procs(spec) or "Auto",
        "command": list(spec.command),
    }
    script = files("muster_worker.sagemaker").joinpath("start_script.py").read_bytes()
    return {START_SCRIPT: script, _SETTINGS: (json.dumps(settings, sort_keys=True) + "\n").encode()}


def starts_ranks(spec: Spec, how: Launch) -> bool:
    """Whether the script starts the ranks, rather than a command that does, or one rank of the toolkit's."""
    launcher = spec.launcher
    return how.by_script and how.distribution is None and (launcher.torchrun or launcher.direct) is not None


def _launcher(spec: Spec, how: Launch) -> str:
    if how.distribution is not None:
        # Each rank that the toolkit starts runs the script, which has only to run the command.
        return "toolkit"
    launcher = spec.launcher
    named = {"torchrun": launcher.torchrun, "mpi": launcher.mpi, "direct": launcher.direct}
    return next((name for name, given in named.items() if given is not None), "perNode")
