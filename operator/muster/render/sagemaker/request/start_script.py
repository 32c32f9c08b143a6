"""muster's start script: what runs the command of a job where SageMaker's toolkit can't by itself. Pure."""

import json
from importlib.resources import files

from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.spec.job import Job, Spec
from muster.api.spec.launcher import launchers
from muster.api.spec.sagemaker.launch import START_SCRIPT, Launch, said_procs

_SETTINGS = "muster_start.json"


def start_files(job: Job, how: Launch) -> dict[str, bytes]:
    """The script and its settings, by their names. Raises `InvalidResource` for a launcher that it doesn't know."""
    spec = job.spec
    if not spec.launcher.chosen.is_for_sagemaker:
        known = [name for name, kind in launchers().items() if kind.is_for_sagemaker]
        message = f"found {spec.launcher.name}, which muster can't start on SageMaker; use one of {', '.join(known)}"
        raise InvalidResource((FieldProblem("spec.launcher", message),))
    settings = {
        "launcher": _launcher(spec, how),
        "args": list(spec.launcher.chosen.arguments()),
        "procs": said_procs(spec) or "Auto",
        "command": list(spec.command),
    }
    script = files("muster_worker.sagemaker").joinpath("start_script.py").read_bytes()
    return {START_SCRIPT: script, _SETTINGS: (json.dumps(settings, sort_keys=True) + "\n").encode()}


def starts_ranks(spec: Spec, how: Launch) -> bool:
    """Whether the script starts the ranks, rather than a command that does, or one rank of the toolkit's."""
    launcher = spec.launcher.chosen
    is_started_here = not launcher.command_starts_ranks and not launcher.runs_on_first_node
    return how.by_script and how.distribution is None and is_started_here


def _launcher(spec: Spec, how: Launch) -> str:
    if how.distribution is not None:
        # Each rank that the toolkit starts runs the script, which has only to run the command.
        return "toolkit"
    return spec.launcher.name
