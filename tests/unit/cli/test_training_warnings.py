"""Every field of a file reaches SageMaker, causes a note, or is refused."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from muster.api.document import JSON
from muster.api.spec.job import Spec
from muster.cli.errors import BadInput
from muster.cli.render.training_request import format_request
from muster.cli.render.validate import check_file
from muster.render.sagemaker.job_warnings import make_training_warnings
from unit.render.sagemaker.builders import ROLE, sagemaker_job

ALONE: dict[str, JSON] = {
    "resources": {"limits": {"cpu": 1}},
    "nodePool": {"name": "p5"},
    "warmStart": "Off",
    "network": {"interface": "eth1"},
    "cleanPodPolicy": "All",
    "startupTimeoutSeconds": 60,
    "queue": {"kueue": "team"},
    "agent": {"inject": "InitContainer"},
    "template": {"spec": {}},
    "nodeOverrides": [{"nodes": "0", "template": {}}],
}
REFUSED = {"spares", "elastic"}
CARRIED_OVER = {
    *(
        "templateRef",
        "backend",
        "suspend",
        "nodes",
        "procsPerNode",
        "launcher",
        "image",
        "command",
        "source",
        "env",
        "hyperparameters",
    ),
    *(
        "metrics",
        "totalSteps",
        "inputs",
        "checkpoint",
        "output",
        "failurePolicy",
        "activeDeadlineSeconds",
        "ttlSecondsAfterFinished",
        "sagemaker",
    ),
}
GROUPS: dict[str, JSON] = {
    "instanceType": None,
    "instanceGroups": [{"name": name, "instanceType": "ml.p4d.24xlarge", "instanceCount": 1} for name in "ab"],
}
TORCH: JSON = {"torchDistributed": {}, "instanceGroup": "a"}
MPI: JSON = {"mpi": {}, "instanceGroup": "a"}
CHANNELS: dict[str, JSON] = {"start": "Channels", "framework": None}
ECR = "111122223333.dkr.ecr.us-west-2.amazonaws.com/train:1"


def test_each_field_is_carried_over_named_or_refused() -> None:
    names = {field.alias or name for name, field in Spec.model_fields.items()}
    assert names == CARRIED_OVER | set(ALONE) | REFUSED


@pytest.mark.parametrize("name", ALONE)
def test_a_field_for_kubernetes_is_named_where_the_job_is_looked_at(name: str) -> None:
    (note,) = make_training_warnings(sagemaker_job({name: ALONE[name]}))
    assert note.startswith(f"ignored on SageMaker: spec.{name}")
    assert f"# {note}\n" in format_request(sagemaker_job({name: ALONE[name]}), "us-west-2", None, None)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, ()),
        ({"image": "pytorch/pytorch:2.8.0"}, ("spec.image pytorch/pytorch:2.8.0 isn't in Amazon ECR",)),
        ({"image": ECR}, ()),
        ({"image": "111122223333.dkr-ecr.us-west-2.on.aws/train:1"}, ()),
        ({"image": "public.ecr.aws/docker/library/python:3.12"}, ("spec.image public.ecr.aws",)),
        ({"checkpoint": {}}, ("spec.checkpoint has no s3: checkpoints are lost",)),
        ({"checkpoint": {"s3": "s3://team/snapshots"}}, ()),
    ],
)
def test_what_may_not_be_as_it_was_meant_is_said(spec: Mapping[str, JSON], words: tuple[str, ...]) -> None:
    result = make_training_warnings(sagemaker_job(dict(spec)))
    assert [note.startswith(word) for note, word in zip(result, words, strict=True)] == [True] * len(words)


@pytest.mark.parametrize(
    ("spec", "block", "words"),
    [
        ({}, {**GROUPS, "distribution": TORCH}, ("each group starts ranks",)),
        ({}, {**GROUPS, "distribution": MPI}, ()),
        ({"image": ECR, "launcher": {"mpi": {}}}, CHANNELS, ("no rank starts without it",)),
        (
            {"image": ECR, "launcher": {"mpi": {}}},
            {**GROUPS, **CHANNELS},
            ("no rank starts without it", "the toolkit starts mpirun in each group"),
        ),
        ({"image": ECR}, CHANNELS, ()),
    ],
)
def test_what_sagemaker_s_toolkit_does_otherwise_or_not_at_all_is_said(
    spec: dict[str, JSON], block: dict[str, JSON], words: tuple[str, ...]
) -> None:
    result = make_training_warnings(sagemaker_job(spec, block))
    assert [word in note for note, word in zip(result, words, strict=True)] == [True] * len(words)


def test_an_unknown_number_of_ranks_is_an_error_before_anything_is_sent() -> None:
    job = sagemaker_job({"procsPerNode": "Auto"}, {"instanceType": "ml.g9.48xlarge"})
    with pytest.raises(BadInput, match=r"found Auto, and muster doesn't know the devices of ml\.g9\.48xlarge"):
        format_request(job, "us-west-2", None, None)


def test_validate_says_it_of_a_job_that_is_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(
        "{apiVersion: muster.dev/v1alpha1, kind: DistributedTrainingJob, metadata: {name: vit}, spec: {backend: "
        f"SageMaker, image: '{ECR}', launcher: {{perNode: {{}}}}, command: [train], nodePool: {{name: p5}}, "
        f"sagemaker: {{role: '{ROLE}', instanceType: ml.g5.xlarge}}}}}}"
    )
    assert check_file(str(file)) == 0
    said = capsys.readouterr()
    assert f"{file}: vit is valid\n" == said.out
    assert f"{file}: ignored on SageMaker: spec.nodePool" in said.err
