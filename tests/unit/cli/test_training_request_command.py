"""`muster render`, `validate` and `explain` of a job for SageMaker: they send no requests to AWS, and report
everything.
"""

import json
import re
from pathlib import Path

import pytest
import yaml

from muster.api.config.operator import OperatorConfig
from muster.api.config.sagemaker import SageMakerConfig
from muster.api.spec.job import Job
from muster.api.yaml.load import decode_documents
from muster.cli.errors import BadInput
from muster.cli.explain.explain import explain_job
from muster.cli.explain.training_explanations import explain_training_request
from muster.cli.explain.training_origins import GROUPS
from muster.cli.render.training_request import build_request, format_request
from muster.cli.render.validate import check_files
from unit.render.sagemaker.builders import ROLE, sagemaker_job, sagemaker_spec

REGION = "us-west-2"
ACCOUNT = "111122223333"

JOBS = [
    sagemaker_job(),
    sagemaker_job({"launcher": {"direct": {}}}),
    sagemaker_job({"command": ["bash", "-c", "ls"], "launcher": {"perNode": {}}}),
    sagemaker_job({"image": "img:1", "launcher": {"perNode": {}}, "command": ["train"]}, {"framework": None}),
    sagemaker_job({"env": [{"name": "A", "value": "b"}], "hyperparameters": {"lr": 1}}, {"tags": {"team": "ml"}}),
    sagemaker_job({}, {"spot": {"maxWaitSeconds": 90000}, "experiment": {"runName": "r"}, "outputKmsKey": "key"}),
]


def test_what_is_shown_is_what_is_sent() -> None:
    text = format_request(sagemaker_job(), REGION, None, None)
    assert yaml.safe_load(text) == build_request(sagemaker_job(), REGION).body
    assert "# CreateTrainingJob in us-west-2, account 111122223333\n" in text
    assert "sourcedir.tar.gz: muster uploads the job's code there first" in text


def test_the_account_is_the_role_s_unless_another_is_named() -> None:
    assert "s3://sagemaker-us-west-2-111122223333/" in format_request(sagemaker_job(), REGION, None, None)
    assert "s3://sagemaker-us-west-2-999900001111/" in format_request(sagemaker_job(), REGION, "999900001111", None)


def test_files_of_muster_s_own_are_named() -> None:
    text = format_request(sagemaker_job({"launcher": {"direct": {}}}), REGION, ACCOUNT, None)
    assert "muster_start.json, muster_start.py added" in text


@pytest.mark.parametrize(
    ("block", "option", "config", "region"),
    [
        ({"region": "eu-west-1"}, None, None, "eu-west-1"),
        ({"region": "eu-west-1"}, "eu-west-1", "us-east-1", "eu-west-1"),
        ({}, "eu-west-1", "us-east-1", "eu-west-1"),
        ({}, None, "us-east-1", "us-east-1"),
    ],
)
def test_the_region_is_the_job_s_or_the_one_that_is_named(
    block: dict[str, str], option: str | None, config: str | None, region: str
) -> None:
    operator = OperatorConfig(sagemaker=SageMakerConfig(region=config))
    assert f"CreateTrainingJob in {region}," in format_request(sagemaker_job({}, {**block}), option, ACCOUNT, operator)


def test_no_region_and_another_region_are_said() -> None:
    with pytest.raises(BadInput, match="set --aws-region"):
        format_request(sagemaker_job(), None, ACCOUNT, None)
    with pytest.raises(BadInput, match=r"--aws-region us-west-2: the job has spec.sagemaker.region: eu-west-1"):
        format_request(sagemaker_job({}, {"region": "eu-west-1"}), REGION, ACCOUNT, None)


def test_an_image_that_aws_has_not_is_found_before_anything_is_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = sagemaker_spec({}, {"framework": {"name": "PyTorch", "version": "2.0.9", "pythonVersion": "py310"}})
    spec["launcher"] = {"perNode": {}}
    job = {"apiVersion": "muster.dev/v1alpha1", "kind": "DistributedTrainingJob", "metadata": {"name": "vit"}}
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump({**job, "spec": spec}))
    assert check_files([str(path)]) == 1
    said = capsys.readouterr().err
    (document,) = decode_documents(path.read_bytes(), "job.yaml")
    line = document.find_line(("spec", "sagemaker", "framework", "version"))
    assert f"job.yaml:{line}: spec.sagemaker.framework.version: found '2.0.9'" in said


@pytest.mark.parametrize("job", JOBS, ids=lambda job: json.dumps(job.spec.command))
def test_every_field_of_the_request_is_explained(job: Job) -> None:
    made = build_request(job, REGION)
    explanations = explain_training_request(job, made)
    assert [each.group for each in explanations] == sorted((each.group for each in explanations), key=GROUPS.index)
    settings = {each.setting.partition("[")[0].partition(".")[0] for each in explanations}
    assert settings == set(made.body)
    assert all(each.source and each.reason for each in explanations)


def test_a_default_is_not_called_the_job_s() -> None:
    plain = {each.setting: each.source for each in explain_training_request(JOBS[0], build_request(JOBS[0], REGION))}
    assert plain["ResourceConfig.VolumeSizeInGB"] == "muster"
    assert plain["RoleArn"] == "spec.sagemaker.role"
    assert plain["HyperParameters.sagemaker_torch_distributed_enabled"] == "spec.launcher"
    assert plain["HyperParameters.sagemaker_program"] == "spec.sagemaker.rankReports"
    own = sagemaker_job({}, {"rankReports": "Off", "volumeSizeGb": 50, "distribution": {"torchDistributed": {}}})
    said = {each.setting: each.source for each in explain_training_request(own, build_request(own, REGION))}
    assert said["ResourceConfig.VolumeSizeInGB"] == "spec.sagemaker.volumeSizeGb"
    assert said["HyperParameters.sagemaker_torch_distributed_enabled"] == "spec.sagemaker.distribution"
    assert said["HyperParameters.sagemaker_program"] == "spec.command"


def test_the_start_script_is_none_of_the_job_s_inputs() -> None:
    job = sagemaker_job({"image": "img:1"}, {"framework": None, "start": "Channels"})
    said = {each.setting: each.source for each in explain_training_request(job, build_request(job, REGION))}
    assert said["InputDataConfig[sm_drivers].ChannelName"] == "spec.sagemaker.start"
    assert said["InputDataConfig[code].ChannelName"] == "spec.source"


def test_the_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    explain_job(sagemaker_job(), 0)
    text = capsys.readouterr().out
    why = "the training job's role"
    assert re.search(rf"^  RoleArn +\.\.\. +spec.sagemaker.role +{why}\n +{ROLE}$", text, re.MULTILINE)
    assert re.search(r"^  ResourceConfig.InstanceCount +2 +spec.nodes +one instance for each node$", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("region", "account", "says"),
    [("US West", ACCOUNT, "--aws-region US West: a region such as"), (REGION, "1111-2222-3333", "12 digits are")],
)
def test_what_is_no_region_and_no_account_is_said(region: str, account: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        format_request(sagemaker_job(), region, account, None)
