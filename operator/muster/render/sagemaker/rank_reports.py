"""Add the agent to a training job's source archive, so that it starts the user's program and reports the rank. Pure.

SageMaker's toolkit (sagemaker-training 5.1.4, `process.py`, `mpi.py`, `torch_distributed.py`) starts the program in the
hyperparameter `sagemaker_program` once for each rank. muster replaces it by `muster_entry.py`, or by `muster_entry.sh`
if the user's program is not Python, because the toolkit installs `requirements.txt` only for Python programs.
"""

from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from json import dumps, loads
from typing import Literal

from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.spec.job import Job
from muster.api.spec.sagemaker.block import get_sagemaker_block
from muster.api.spec.sagemaker.launch import START_SCRIPT, choose_distribution, decide_launch, uses_some_instance_groups
from muster.render.agent_archive import build_agent_archive
from muster.render.sagemaker.request.distribution import has_separate_worlds
from muster.render.sagemaker.request.start_script import does_script_start_ranks
from muster.render.sagemaker.request.training_request import Archive, Fields, TrainingRequest

PROGRAM = "sagemaker_program"
TORCH_DISTRIBUTED = "sagemaker_torch_distributed_enabled"
MPI = "sagemaker_mpi_enabled"
MODEL_PARALLEL = "mp_parameters"

_ENTRY = "muster_entry"
_PYTHON = ".py"


def make_report_files(program: str) -> dict[str, bytes]:
    """Return the files with which the ranks of `program` report, by name. They belong into the archive's root."""
    suffix = _get_suffix(program)
    return {
        f"{_ENTRY}{suffix}": files("muster_worker.sagemaker.log_rank").joinpath(f"entry{suffix}").read_bytes(),
        f"{_ENTRY}.program": f"{program}\n".encode(),
        f"{_ENTRY}.pyz": build_agent_archive(),
    }


def add_rank_reports(request: TrainingRequest, report_mode: Literal["Auto", "On", "Off"]) -> TrainingRequest:
    """Replace the user's program by muster's, if `spec.sagemaker.rankReports` allows it.

    Raises `InvalidResource` if it requires reports that are impossible.
    """
    if report_mode == "Off" or (report_mode == "Auto" and not _has_supported_launcher(request.hyperparameters)):
        return request
    reason = _find_report_problem(request)
    if reason is None and request.archive is not None:
        # muster's own start script starts its command through the agent.
        uses_start_script = _get_program(request.hyperparameters) == START_SCRIPT
        return add_agent(request, report_mode) if uses_start_script else _replace_program(request, request.archive)
    if report_mode == "Auto":
        return request
    message = f"the ranks can't report: {reason}; set Auto"
    raise InvalidResource((FieldProblem("spec.sagemaker.rankReports", message),))


def add_agent(request: TrainingRequest, report_mode: Literal["Auto", "On", "Off"]) -> TrainingRequest:
    """Add the agent to the archive. muster's start script starts each rank through it."""
    if report_mode == "Off" or request.archive is None:
        return request
    files = {**request.archive.files, f"{_ENTRY}.pyz": build_agent_archive()}
    return TrainingRequest(request.body, replace(request.archive, files=files))


def can_ranks_report(job: Job) -> bool:
    """Whether the job's ranks may report, according to its spec."""
    block = get_sagemaker_block(job.spec)
    distribution = choose_distribution(job.spec)
    if uses_some_instance_groups(block):
        return False
    if block.rank_reports == "Auto" and does_script_start_ranks(job.spec, decide_launch(job.spec)):
        return True
    if block.rank_reports != "Auto" or distribution is None:
        return block.rank_reports == "On"
    starters = (distribution.torch_distributed, distribution.mpi)
    return any(starter is not None and starter.enabled for starter in starters)


def are_rank_numbers_unique(job: Job) -> bool:
    """Whether a rank's number is unique in the job. In separate worlds, ranks have the same numbers."""
    return not has_separate_worlds(job.spec)


def _has_supported_launcher(hyperparameters: Mapping[str, str]) -> bool:
    """Whether torchrun or mpirun starts the ranks.

    It is False for Amazon's model parallel library, whose launcher runs only in Amazon's images.
    """
    if MODEL_PARALLEL in hyperparameters:
        return False
    return any(hyperparameters.get(name) == "true" for name in (TORCH_DISTRIBUTED, MPI))


def _find_report_problem(request: TrainingRequest) -> str | None:
    """Return why the ranks can't report, as a part of a sentence; None if they can."""
    if PROGRAM not in request.hyperparameters:
        return "SageMaker's toolkit does not start them"
    if request.archive is None:
        return "spec.source is an archive in S3, which muster doesn't change"
    return None


def _replace_program(request: TrainingRequest, archive: Archive) -> TrainingRequest:
    hyperparameters = request.hyperparameters
    program = _get_program(hyperparameters)
    entry = {PROGRAM: dumps(f"{_ENTRY}{_get_suffix(program)}")}
    body: Fields = {**request.body, "HyperParameters": {**hyperparameters, **entry}}
    return TrainingRequest(body, replace(archive, files={**archive.files, **make_report_files(program)}))


def _get_program(hyperparameters: Mapping[str, str]) -> str:
    return str(loads(hyperparameters.get(PROGRAM, '""')))


def _get_suffix(program: str) -> str:
    return _PYTHON if program.endswith(_PYTHON) else ".sh"
