"""`--config`: named pools as in the operator, for render, explain and validate."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from muster.cli.commands import app
from muster.cli.config_file import read_config_file
from muster.cli.errors import BadInput

JOB = """\
apiVersion: muster.dev/v1alpha1
kind: DistributedTrainingJob
metadata: {name: vit}
spec:
  nodes: 2
  launcher: {torchrun: {}}
  image: train:1
  command: [python, train.py]
  nodePool: {name: trainium}
"""
CONFIG = "nodePools: [{name: trainium, instanceType: trn1.32xlarge}]\n"
ON_SAGEMAKER = """\
apiVersion: muster.dev/v1alpha1
kind: DistributedTrainingJob
metadata: {name: vit}
spec:
  backend: SageMaker
  launcher: {perNode: {}}
  image: train:1
  command: [train]
  sagemaker: {role: "arn:aws:iam::111122223333:role/training", instanceType: ml.c5.xlarge}
"""
TENANCY = """\
sagemaker: {region: us-west-2}
tenancy:
- namespaces: [default]
  roles: ["arn:aws:iam::111122223333:role/training"]
  buckets: [{name: sagemaker-us-west-2-111122223333}]
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    job, config = tmp_path / "job.yaml", tmp_path / "config.yaml"
    job.write_text(JOB, encoding="utf-8")
    config.write_text(CONFIG, encoding="utf-8")
    return str(job), str(config)


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(words))
    return result.exit_code, result.output


def test_a_job_is_rendered_with_its_pool(files: tuple[str, str]) -> None:
    job, config = files
    code, text = run("render", "-f", job, "--config", config)
    assert code == 0
    assert "node.kubernetes.io/instance-type: trn1.32xlarge" in text
    assert "aws.amazon.com/neuron: 16" in text
    assert "name: trainium" in text


def test_without_a_configuration_the_pool_is_unknown(files: tuple[str, str]) -> None:
    _, text = run("render", "-f", files[0])
    assert (
        "# a cluster can't run this job yet: spec.nodePool.name: found trainium; this pool is in the operator's" in text
    )


def test_settings_say_which_pool_they_come_from(files: tuple[str, str]) -> None:
    job, config = files
    _, text = run("explain", "-f", job, "--config", config)
    line = next(line for line in text.splitlines() if "aws.amazon.com/neuron " in line)
    assert "node pool trainium" in line
    assert "all that a trn1.32xlarge has" in line


def test_a_name_is_checked_where_the_names_are_known(files: tuple[str, str], tmp_path: Path) -> None:
    job, config = files
    assert run("validate", "-f", job)[0] == 0
    assert run("validate", "-f", job, "--config", config)[0] == 0
    empty = tmp_path / "empty.yaml"
    empty.write_text("", encoding="utf-8")
    code, text = run("validate", "-f", job, "--config", str(empty))
    assert code == 1
    assert f"{job}:9: spec.nodePool.name: " in text


def test_what_a_job_leaves_to_the_configuration_is_held_against_it_too(tmp_path: Path) -> None:
    job, config = tmp_path / "job.yaml", tmp_path / "config.yaml"
    job.write_text(ON_SAGEMAKER, encoding="utf-8")
    config.write_text(TENANCY, encoding="utf-8")
    assert run("validate", "-f", str(job), "--config", str(config))[0] == 0
    config.write_text(TENANCY.replace("us-west-2}", "eu-west-1}"), encoding="utf-8")
    code, text = run("validate", "-f", str(job), "--config", str(config))
    assert code == 1
    assert 'go to "s3://sagemaker-eu-west-1-111122223333/"; this location in S3 is not allowed' in text


@pytest.mark.parametrize(
    ("text", "words"),
    [("nodePools: 1", "config.yaml:1: nodePools: found 1"), ("{}\n---\n{}", "2 documents"), ("a: [", "config.yaml:")],
)
def test_a_wrong_configuration_is_refused(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=words):
        read_config_file(str(file))


def test_a_missing_configuration_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"nowhere\.yaml: No such file"):
        read_config_file(str(tmp_path / "nowhere.yaml"))
    assert read_config_file(None) is None
