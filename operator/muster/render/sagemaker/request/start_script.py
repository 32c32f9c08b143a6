"""Provide muster's start script, which runs a job's command if SageMaker's toolkit can't. Pure."""

import json
from importlib.resources import files

from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.spec.job import Job, Spec
from muster.api.spec.launcher import list_launcher_types
from muster.api.spec.sagemaker.launch import START_SCRIPT, Launch, get_explicit_procs_per_node

_SETTINGS = "muster_start.json"


def make_start_files(job: Job, launch: Launch) -> dict[str, bytes]:
    """Return the script and its settings by file name. Raises `InvalidResource` for an unsupported launcher."""
    spec = job.spec
    if not spec.launcher.chosen_launcher.supports_sagemaker:
        supported = [name for name, kind in list_launcher_types().items() if kind.supports_sagemaker]
        message = (
            f"found {spec.launcher.name}, which muster can't start on SageMaker; use one of {', '.join(supported)}"
        )
        raise InvalidResource((FieldProblem("spec.launcher", message),))
    settings = {
        "launcher": _choose_launcher(spec, launch),
        "args": list(spec.launcher.chosen_launcher.list_arguments()),
        "procs": get_explicit_procs_per_node(spec) or "Auto",
        "command": list(spec.command),
    }
    script = files("muster_worker.sagemaker").joinpath("start_script.py").read_bytes()
    return {START_SCRIPT: script, _SETTINGS: (json.dumps(settings, sort_keys=True) + "\n").encode()}


def does_script_start_ranks(spec: Spec, launch: Launch) -> bool:
    """Whether the script starts the ranks, instead of the command or the toolkit."""
    launcher = spec.launcher.chosen_launcher
    is_started_here = not launcher.command_starts_ranks and not launcher.runs_on_first_node
    return launch.uses_start_script and launch.distribution is None and is_started_here


def _choose_launcher(spec: Spec, launch: Launch) -> str:
    if launch.distribution is not None:
        # The toolkit starts the script once per rank, and the script only runs the command.
        return "toolkit"
    return spec.launcher.name
