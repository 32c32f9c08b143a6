"""The changes in a request, and in the job's code, with which its ranks report."""

import io
import zipfile
from typing import Literal

import pytest

from muster.api.document import JSON
from muster.api.field_problems import InvalidResource
from muster.cli.render.training_request import build_request
from muster.render.sagemaker.rank_reports import (
    add_rank_reports,
    are_rank_numbers_unique,
    can_ranks_report,
    make_report_files,
)
from muster.render.sagemaker.request.training_request import Archive, TrainingRequest
from unit.render.sagemaker.builders import sagemaker_job

Wanted = Literal["Auto", "On", "Off"]

ARCHIVE = Archive("s3://team/code/sourcedir.tar.gz", "", {"other.txt": b"x"})
TORCH: dict[str, JSON] = {"sagemaker_program": '"train.py"', "sagemaker_torch_distributed_enabled": "true", "lr": "0.1"}
MPI: dict[str, JSON] = {"sagemaker_program": '"run/train.sh"', "sagemaker_mpi_enabled": "true"}
PLAIN: dict[str, JSON] = {"sagemaker_program": '"train.py"'}
OFF: dict[str, JSON] = {**PLAIN, "sagemaker_mpi_enabled": "false"}
MODEL_PARALLEL: dict[str, JSON] = {**MPI, "mp_parameters": "{}"}
CONTAINER: dict[str, JSON] = {"lr": "0.1"}


def sent(hyperparameters: dict[str, JSON], archive: Archive | None = ARCHIVE) -> TrainingRequest:
    return TrainingRequest({"TrainingJobName": "vit", "HyperParameters": hyperparameters, "RoleArn": "r"}, archive)


@pytest.mark.parametrize(
    ("hyperparameters", "wanted", "program"),
    [
        (TORCH, "Auto", '"muster_entry.py"'),
        (MPI, "Auto", '"muster_entry.sh"'),
        (PLAIN, "On", '"muster_entry.py"'),
        (MODEL_PARALLEL, "On", '"muster_entry.sh"'),
    ],
)
def test_one_hyperparameter_and_files_beside_the_code(
    hyperparameters: dict[str, JSON], wanted: Wanted, program: str
) -> None:
    asked = sent(hyperparameters)
    made = add_rank_reports(asked, wanted)
    assert made.body == {**asked.body, "HyperParameters": {**hyperparameters, "sagemaker_program": program}}
    assert made.archive is not None
    assert set(made.archive.files) == {"other.txt", "muster_entry.program", "muster_entry.pyz", program.strip('"')}
    assert (made.archive.uri, made.archive.kms_key) == (ARCHIVE.uri, ARCHIVE.kms_key)


def test_muster_s_own_start_script_stays_the_program() -> None:
    asked = sent({**TORCH, "sagemaker_program": '"muster_start.py"'})
    made = add_rank_reports(asked, "Auto")
    assert made.body == asked.body
    assert made.archive is not None
    assert set(made.archive.files) == {"other.txt", "muster_entry.pyz"}


@pytest.mark.parametrize(
    ("request_", "wanted"),
    [
        (sent(TORCH), "Off"),
        (sent(PLAIN), "Auto"),
        (sent(OFF), "Auto"),
        (sent(MODEL_PARALLEL), "Auto"),
        (sent(CONTAINER), "Auto"),
        (sent(TORCH, archive=None), "Auto"),
    ],
)
def test_else_nothing_changes(request_: TrainingRequest, wanted: Wanted) -> None:
    assert add_rank_reports(request_, wanted) is request_


@pytest.mark.parametrize(
    ("request_", "why"),
    [(sent(CONTAINER), "toolkit does not start them"), (sent(TORCH, archive=None), "an archive in S3")],
)
def test_what_can_t_be_is_refused(request_: TrainingRequest, why: str) -> None:
    with pytest.raises(InvalidResource) as refused:
        add_rank_reports(request_, "On")
    (problem,) = refused.value.problems
    assert problem.path == "spec.sagemaker.rankReports"
    assert why in problem.message


def test_the_same_program_has_the_same_files() -> None:
    first, second = make_report_files("train.py"), make_report_files("train.py")
    assert first == second
    assert first["muster_entry.program"] == b"train.py\n"
    with zipfile.ZipFile(io.BytesIO(first["muster_entry.pyz"])) as agent:
        assert "muster_worker/sagemaker/log_rank/wrapper.py" in agent.namelist()


def test_ranks_of_one_group_are_not_reported_as_all_ranks() -> None:
    groups: list[JSON] = [
        {"name": "train", "instanceType": "ml.p4d.24xlarge", "instanceCount": 1},
        {"name": "data", "instanceType": "ml.c5.xlarge", "instanceCount": 1},
    ]
    distribution: JSON = {"torchDistributed": {}, "instanceGroup": "train"}
    job = sagemaker_job({}, {"instanceType": None, "instanceGroups": groups, "distribution": distribution})
    assert build_request(job, "us-west-2").hyperparameters["sagemaker_program"] == '"train.py"'
    assert not can_ranks_report(job)
    # each group has a torchrun, and a rank 0
    assert not are_rank_numbers_unique(job)
    mpi: JSON = {"mpi": {}, "instanceGroup": "train"}
    by_mpi = sagemaker_job({}, {"instanceType": None, "instanceGroups": groups, "distribution": mpi})
    assert (can_ranks_report(by_mpi), are_rank_numbers_unique(by_mpi)) == (False, True)
    assert are_rank_numbers_unique(sagemaker_job())
    assert can_ranks_report(sagemaker_job({}, {"distribution": {"torchDistributed": {}}}))
