"""Make a training job's ranks report: add the agent to the source archive, and let it wrap the program. Pure.

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
from muster.render.agent_archive import agent_archive
from muster.render.sagemaker.request.distribution import has_separate_worlds
from muster.render.sagemaker.request.start_script import starts_ranks
from muster.render.sagemaker.request.training_request import Archive, Fields, TrainingRequest

PROGRAM = "sagemaker_program"
TORCH_DISTRIBUTED = "sagemaker_torch_distributed_enabled"
MPI = "sagemaker_mpi_enabled"
MODEL_PARALLEL = "mp_parameters"

_ENTRY = "muster_entry"
_PYTHON = ".py"


def report_files(program: str) -> dict[str, bytes]:
    """Return the files, by name, that make the ranks of `program` report. They belong into the archive's root."""
    suffix = _suffix(program)
    return {
        f"{_ENTRY}{suffix}": files("muster_worker.sagemaker.log_rank").joinpath(f"entry{suffix}").read_bytes(),
        f"{_ENTRY}.program": f"{program}\n".encode(),
        f"{_ENTRY}.pyz": agent_archive(),
    }


def with_rank_reports(request: TrainingRequest, report_mode: Literal["Auto", "On", "Off"]) -> TrainingRequest:
    """Replace the user's program by muster's, if `spec.sagemaker.rankReports` allows it.

    Raises `InvalidResource` if it requires reports that are impossible.
    """
    if report_mode == "Off" or (report_mode == "Auto" and not _has_supported_launcher(request.hyperparameters)):
        return request
    reason = _why_impossible(request)
    if reason is None and request.archive is not None:
        # muster's own start script wraps its command in the agent.
        uses_start_script = _program(request.hyperparameters) == START_SCRIPT
        return with_agent(request, report_mode) if uses_start_script else _with_entry(request, request.archive)
    if report_mode == "Auto":
        return request
    message = f"the ranks can't report: {reason}; set Auto"
    raise InvalidResource((FieldProblem("spec.sagemaker.rankReports", message),))


def with_agent(request: TrainingRequest, report_mode: Literal["Auto", "On", "Off"]) -> TrainingRequest:
    """Add the agent to the archive, with which muster's start script wraps each rank."""
    if report_mode == "Off" or request.archive is None:
        return request
    files = {**request.archive.files, f"{_ENTRY}.pyz": agent_archive()}
    return TrainingRequest(request.body, replace(request.archive, files=files))


def may_report(job: Job) -> bool:
    """Whether the job's ranks may report, according to its spec."""
    block = get_sagemaker_block(job.spec)
    distribution = choose_distribution(job.spec)
    if uses_some_instance_groups(block):
        return False
    if block.rank_reports == "Auto" and starts_ranks(job.spec, decide_launch(job.spec)):
        return True
    if block.rank_reports != "Auto" or distribution is None:
        return block.rank_reports == "On"
    starters = (distribution.torch_distributed, distribution.mpi)
    return any(starter is not None and starter.enabled for starter in starters)


def launchers_identify_ranks(job: Job) -> bool:
    """Whether the launchers' output identifies ranks. In separate worlds, the ranks have the same numbers."""
    return not has_separate_worlds(job.spec)


def _has_supported_launcher(hyperparameters: Mapping[str, str]) -> bool:
    """Whether torchrun or mpirun starts the ranks.

    It is False for Amazon's model parallel library, whose launcher runs only in Amazon's images.
    """
    if MODEL_PARALLEL in hyperparameters:
        return False
    return any(hyperparameters.get(name) == "true" for name in (TORCH_DISTRIBUTED, MPI))


def _why_impossible(request: TrainingRequest) -> str | None:
    """Return why the ranks can't report, as a part of a sentence; None if they can."""
    if PROGRAM not in request.hyperparameters:
        return "SageMaker's toolkit does not start them"
    if request.archive is None:
        return "spec.source is an archive in S3, which muster doesn't change"
    return None


def _with_entry(request: TrainingRequest, archive: Archive) -> TrainingRequest:
    hyperparameters = request.hyperparameters
    program = _program(hyperparameters)
    entry = {PROGRAM: dumps(f"{_ENTRY}{_suffix(program)}")}
    body: Fields = {**request.body, "HyperParameters": {**hyperparameters, **entry}}
    return TrainingRequest(body, replace(archive, files={**archive.files, **report_files(program)}))


def _program(hyperparameters: Mapping[str, str]) -> str:
    return str(loads(hyperparameters.get(PROGRAM, '""')))


def _suffix(program: str) -> str:
    return _PYTHON if program.endswith(_PYTHON) else ".sh"
