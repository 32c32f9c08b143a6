"""docs/sagemaker.md: its job is valid, its tables are complete, and their launchers and versions are correct."""

import re
from pathlib import Path

import pytest

from muster.api.document import JSON
from muster.api.spec.launcher import LauncherSpec
from muster.api.spec.sagemaker.distribution import Distribution
from muster.api.spec.sagemaker.launch import decide_launch
from muster.api.spec.sagemaker.spec import SageMaker
from muster.api.spec.sagemaker.support import (
    DATA_PARALLEL_VERSIONS,
    TORCH_DISTRIBUTED_ON_GPU,
    TORCH_DISTRIBUTED_ON_TRAINIUM,
)
from muster.api.validation.validate import validate
from muster.api.yaml.load import load_documents
from muster.cli.render.training_request import format_request
from muster.importers.sagemaker.standin.muster_standin import estimators
from unit.render.sagemaker.builders import sagemaker_job

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "sagemaker.md").read_text(encoding="utf-8")


def table(header: str) -> list[list[str]]:
    """Return the rows of the table with this header of the first column."""
    body = PAGE.split(f"| {header} |", 1)[1].split("\n\n", 1)[0].split("\n")[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in body]


def test_the_job_on_the_page_is_one() -> None:
    (document,) = load_documents(PAGE.split("```yaml\n")[1].split("```")[0], "sagemaker.md")
    text = format_request(validate(document), None, None, None)
    assert "sagemaker_torch_distributed_enabled: 'true'" in text


def test_every_launcher_and_distribution_is_documented() -> None:
    launchers = {str(field.alias) for field in LauncherSpec.model_fields.values()}
    assert {row[0].strip("`") for row in table("launcher")} == launchers
    ways = {str(field.alias) for field in Distribution.model_fields.values()} - {"instanceGroup"}
    assert {row[0].strip("`") for row in table("distribution")} == ways


@pytest.mark.parametrize("launcher", ["torchrun", "direct", "perNode"])
@pytest.mark.parametrize("start", ["Toolkit", "Container"])
def test_who_starts_the_ranks_is_as_the_table_says(launcher: str, start: str) -> None:
    column = 1 if start == "Toolkit" else 2
    said = next(row[column] for row in table("launcher") if row[0] == f"`{launcher}`")
    block: dict[str, JSON] = {"start": start, "instanceType": "ml.c5.xlarge"}
    image = {} if start == "Toolkit" else {"image": "img:1"}
    job = sagemaker_job({"launcher": {launcher: {}}, **image}, block)
    how = decide_launch(job.spec)
    uses_start_script = "start script" in said or (launcher == "perNode" and start == "Container")
    assert how.uses_start_script == uses_start_script


def test_versions_are_those_that_are_checked() -> None:
    rows = {row[0].strip("`"): row[2] for row in table("distribution")}
    gpu, trainium = TORCH_DISTRIBUTED_ON_GPU, TORCH_DISTRIBUTED_ON_TRAINIUM
    assert rows["torchDistributed"] == (
        f"GPUs: PyTorch {gpu[0]} to {gpu[-1]}; Trainium: {trainium[0]} to {trainium[-1]}"
    )
    last = {name: versions[-1] for name, versions in DATA_PARALLEL_VERSIONS.items()}
    assert f"up to PyTorch {last['PyTorch']} and TensorFlow {last['TensorFlow']}" in rows["dataParallel"]


def test_its_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#]+)", PAGE):
        assert (ROOT / "docs" / link).exists(), link


def test_its_fields_exist() -> None:
    by_key = {str(field.alias) for field in SageMaker.model_fields.values()}
    named = set(re.findall(r"`sagemaker\.([a-zA-Z]+)", PAGE))
    assert named <= by_key


def test_every_field_is_documented() -> None:
    by_key = {str(field.alias) for field in SageMaker.model_fields.values()}
    words = {word for shown in re.findall(r"`([^`\n]+)`", PAGE) for word in re.findall(r"[a-zA-Z]+", shown)}
    assert by_key - words == set()


def test_the_table_of_arguments_has_the_sdk_s_and_the_job_s_names() -> None:
    by_key = {str(field.alias) for field in SageMaker.model_fields.values()}
    arguments = {
        name
        for kind in (estimators.Estimator, estimators.PyTorch, estimators.TensorFlow, estimators.HuggingFace)
        for name in kind.list_parameters()
    }
    for left, right in table("argument of an estimator"):
        assert set(re.findall(r"`(\w+)`", left)) <= arguments, left
        assert {name.partition(":")[0] for name in re.findall(r"`([^`]+)`", right)} <= by_key, right
