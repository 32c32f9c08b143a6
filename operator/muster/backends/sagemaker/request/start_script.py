"""muster's start script: what runs the command of a job once a node where SageMaker's toolkit can't. Pure."""

import json
from importlib.resources import files

from muster.api.sagemaker_launch import START_SCRIPT
from muster.api.spec import Job

_SETTINGS = "muster_start.json"


def start_files(job: Job) -> dict[str, bytes]:
    """The script and its settings, as files of the source archive's root."""
    spec = job.spec
    torchrun, mpi, direct = spec.launcher.torchrun, spec.launcher.mpi, spec.launcher.direct
    named = {"torchrun": torchrun, "mpi": mpi, "direct": direct}
    settings = {
        "launcher": next((name for name, given in named.items() if given is not None), "perNode"),
        "args": list(torchrun.args if torchrun is not None else mpi.args if mpi is not None else ()),
        "procs": spec.procs_per_node,
        "command": list(spec.command),
    }
    script = files("muster_worker").joinpath("sagemaker_start.py").read_bytes()
    return {START_SCRIPT: script, _SETTINGS: (json.dumps(settings, sort_keys=True) + "\n").encode()}
