"""The operator's defaults for a SageMaker job's spec."""

from typing import Any

import pytest

from muster.api.document import JSON, Document
from muster.api.field_problems import InvalidResource
from muster.api.spec.job import Job
from muster.api.validation.validate import validate
from muster.render.sagemaker.apply_defaults import apply_defaults

PYTORCH: dict[str, JSON] = {"name": "PyTorch", "version": "2.0.0", "pythonVersion": "py310"}
TENSORFLOW = {"name": "TensorFlow", "version": "2.11.0", "pythonVersion": "py39"}


def job(instance_type: str, procs: int | str = "Auto", **sagemaker: Any) -> Job:
    spec: dict[str, Any] = {
        "backend": "SageMaker",
        "nodes": 2,
        "procsPerNode": procs,
        "launcher": {"torchrun": {}},
        "command": ["python", "train.py"],
        "source": {"inline": {"files": {"train.py": "pass"}}},
        "sagemaker": {"role": "arn:aws:iam::111122223333:role/r", "instanceType": instance_type, **sagemaker},
    }
    kind = {"apiVersion": "muster.dev/v1alpha1", "kind": "DistributedTrainingJob"}
    return validate(Document({**kind, "metadata": {"name": "vit"}, "spec": spec}))


@pytest.mark.parametrize(
    ("asked", "procs"),
    [
        (job("ml.p4d.24xlarge", framework=PYTORCH), 8),
        (job("ml.p3.8xlarge", framework=PYTORCH), 4),
        (job("ml.p3.8xlarge", 4, framework=PYTORCH), 4),
        (job("ml.c5.xlarge", framework=PYTORCH), 1),
        (job("ml.g7e.12xlarge", framework=PYTORCH), 2),
        (job("ml.p6e-gb200.36xlarge", 4, framework=PYTORCH), 4),
        (job("ml.p4d.24xlarge", framework=PYTORCH, distribution={"mpi": {"processesPerHost": 2}}), 2),
        (job("ml.p3.8xlarge", framework=TENSORFLOW, distribution={"parameterServer": {}}), 1),
    ],
)
def test_ranks_are_counted_as_what_starts_them_counts(asked: Job, procs: int) -> None:
    assert apply_defaults(asked, "us-west-2").spec.procs_per_node == procs


def test_the_region_is_the_jobs_else_the_operators_else_missing() -> None:
    own = apply_defaults(job("ml.c5.xlarge", framework=PYTORCH, region="eu-west-1"), "us-west-2").spec.sagemaker
    other = apply_defaults(job("ml.c5.xlarge", framework=PYTORCH), "us-west-2").spec.sagemaker
    assert own is not None
    assert other is not None
    assert (own.region, other.region) == ("eu-west-1", "us-west-2")
    with pytest.raises(InvalidResource, match=r"spec\.sagemaker\.region: missing"):
        apply_defaults(job("ml.c5.xlarge", framework=PYTORCH), "")


@pytest.mark.parametrize("unknown", ["ml.p6e-gb200.36xlarge", "ml.g9.48xlarge", "ml.trn9.48xlarge"])
def test_an_unknown_number_of_ranks_is_an_error(unknown: str) -> None:
    with pytest.raises(InvalidResource, match=rf"procsPerNode: found Auto, .* {unknown}; set the number"):
        apply_defaults(job(unknown, framework=PYTORCH), "us-west-2")


def test_a_command_once_a_node_of_unlike_groups_is_one_rank_each() -> None:
    groups: list[JSON] = [
        {"name": "gpu", "instanceType": "ml.p4d.24xlarge", "instanceCount": 1},
        {"name": "cpu", "instanceType": "ml.c5.xlarge", "instanceCount": 1},
    ]
    asked = job("ml.c5.xlarge", framework=PYTORCH)
    block: dict[str, JSON] = {
        "role": "arn:aws:iam::111122223333:role/r",
        "framework": PYTORCH,
        "instanceGroups": groups,
    }
    spec: dict[str, JSON] = {
        **asked.spec.model_dump(by_alias=True, exclude_none=True, exclude_unset=True),
        "sagemaker": block,
    }
    document: dict[str, JSON] = {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "DistributedTrainingJob",
        "metadata": {"name": "vit"},
    }
    with pytest.raises(InvalidResource, match=r"procsPerNode: found Auto with instance groups gpu, cpu"):
        validate(Document({**document, "spec": spec}))
    once = validate(Document({**document, "spec": {**spec, "launcher": {"perNode": {}}}}))
    assert apply_defaults(once, "us-west-2").spec.procs_per_node == 1
