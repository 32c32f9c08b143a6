"""How a training job's ranks come to report: the agent travels in the source archive and stands around the program.

SageMaker's toolkit (sagemaker-training 5.1.4, `process.py`, `mpi.py`, `torch_distributed.py`) starts the file that the
hyperparameter `sagemaker_program` names, once a rank. With reports that is `muster_entry.py`, or `.sh` where the user's
program is none of Python: the toolkit installs `requirements.txt` for the one and not for the other. Nothing else of
the request changes, and without reports nothing at all. Pure.
"""

from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from json import dumps, loads
from typing import Literal

from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.spec.job import Job
from muster.api.spec.sagemaker.block import block_of
from muster.api.spec.sagemaker.launch import START_SCRIPT, distribution_of, is_on_some_instances, launch
from muster.render.agent_archive import agent_archive
from muster.render.sagemaker.request.distribution import groups_are_apart
from muster.render.sagemaker.request.start_script import starts_ranks
from muster.render.sagemaker.request.training_request import Archive, Fields, TrainingRequest

PROGRAM = "sagemaker_program"
TORCH_DISTRIBUTED = "sagemaker_torch_distributed_enabled"
MPI = "sagemaker_mpi_enabled"
MODEL_PARALLEL = "mp_parameters"

_ENTRY = "muster_entry"
_PYTHON = ".py"


def report_files(program: str) -> dict[str, bytes]:
    """What goes into the root of the source archive, by name, so that the ranks of the user's `program` report."""
    suffix = _suffix(program)
    return {
        f"{_ENTRY}{suffix}": files("muster_worker.sagemaker.log_rank").joinpath(f"entry{suffix}").read_bytes(),
        f"{_ENTRY}.program": f"{program}\n".encode(),
        f"{_ENTRY}.pyz": agent_archive(),
    }


def with_rank_reports(request: TrainingRequest, wanted: Literal["Auto", "On", "Off"]) -> TrainingRequest:
    """The request with the program that reports in the user's place, where `spec.sagemaker.rankReports` wants it.

    Raises `InvalidResource` when it wants what can't be.
    """
    if wanted == "Off" or (wanted == "Auto" and not _by_default(request.hyperparameters)):
        return request
    why_not = _why_not(request)
    if why_not is None and request.archive is not None:
        # the start script is muster's own, and sets the agent around the command that it runs
        by_script = _program(request.hyperparameters) == START_SCRIPT
        return with_agent(request, wanted) if by_script else _reporting(request, request.archive)
    if wanted == "Auto":
        return request
    message = f"the ranks can't report: {why_not}; set Auto, and they do where they can"
    raise InvalidResource((FieldProblem("spec.sagemaker.rankReports", message),))


def with_agent(request: TrainingRequest, wanted: Literal["Auto", "On", "Off"]) -> TrainingRequest:
    """The request with the agent beside muster's start script, which sets it around each rank that it starts itself."""
    if wanted == "Off" or request.archive is None:
        return request
    files = {**request.archive.files, f"{_ENTRY}.pyz": agent_archive()}
    return TrainingRequest(request.body, replace(request.archive, files=files))


def may_report(job: Job) -> bool:
    """Whether the job's ranks may report, by its spec alone: then it is worth while to read their log as it grows."""
    block = block_of(job.spec)
    distribution = distribution_of(job.spec)
    if is_on_some_instances(block):
        return False
    if block.rank_reports == "Auto" and starts_ranks(job.spec, launch(job.spec)):
        return True
    if block.rank_reports != "Auto" or distribution is None:
        return block.rank_reports == "On"
    starters = (distribution.torch_distributed, distribution.mpi)
    return any(starter is not None and starter.enabled for starter in starters)


def launchers_tell(job: Job) -> bool:
    """Whether what launchers say of a rank is of the job's: ranks of other worlds have the same numbers."""
    return not groups_are_apart(job.spec)


def _by_default(hyperparameters: Mapping[str, str]) -> bool:
    """Whether torchrun or mpirun starts the ranks.

    Not with Amazon's model parallel library, whose launcher runs in Amazon's images only.
    """
    if MODEL_PARALLEL in hyperparameters:
        return False
    return any(hyperparameters.get(name) == "true" for name in (TORCH_DISTRIBUTED, MPI))


def _why_not(request: TrainingRequest) -> str | None:
    """Why the ranks can't report, as a clause; None when they can."""
    if PROGRAM not in request.hyperparameters:
        return "SageMaker's toolkit does not start them"
    if request.archive is None:
        return "spec.source is an archive in S3, which muster leaves as it is"
    return None


def _reporting(request: TrainingRequest, archive: Archive) -> TrainingRequest:
    value = request.hyperparameters
    program = _program(value)
    entry = {PROGRAM: dumps(f"{_ENTRY}{_suffix(program)}")}
    body: Fields = {**request.body, "HyperParameters": {**value, **entry}}
    return TrainingRequest(body, replace(archive, files={**archive.files, **report_files(program)}))


def _program(hyperparameters: Mapping[str, str]) -> str:
    return str(loads(hyperparameters.get(PROGRAM, '""')))


def _suffix(program: str) -> str:
    return _PYTHON if program.endswith(_PYTHON) else ".sh"
