"""Commands about a file of a job that names a template."""

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from muster.cli.commands import app
from muster.cli.errors import BadInput
from muster.cli.job_file import read_job

TEMPLATE = """\
apiVersion: muster.dev/v1alpha1
kind: ClusterTrainingTemplate
metadata: {name: cpu}
spec:
  image: python:3.12-slim
  launcher: {direct: {}}
  env:
  - {name: OMP_NUM_THREADS, value: "1"}
"""
JOB = """\
apiVersion: muster.dev/v1alpha1
kind: DistributedTrainingJob
metadata: {name: hello}
spec:
  templateRef: {kind: ClusterTrainingTemplate, name: cpu}
  nodes: 2
  command: [python, train.py]
  env:
  - {name: LEVEL, value: "3"}
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("job.yaml").write_text(JOB)
    Path("cpu.yaml").write_text(TEMPLATE)
    Path("both.yaml").write_text(f"{TEMPLATE}---\n{JOB}")
    return tmp_path


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("arguments", [("job.yaml", "--template", "cpu.yaml"), ("both.yaml",)])
def test_render_prints_the_merged_job(arguments: tuple[str, ...]) -> None:
    code, printed, _ = run("render", "-f", *arguments)
    assert code == 0
    spec = next(yaml.safe_load_all(printed))["spec"]
    assert spec["image"] == "python:3.12-slim"
    assert "templateRef" not in spec
    assert [variable["name"] for variable in spec["env"]] == ["OMP_NUM_THREADS", "LEVEL"]


@pytest.mark.usefixtures("files")
def test_what_render_prints_needs_no_template_any_more() -> None:
    _, printed, _ = run("render", "-f", "both.yaml")
    Path("merged.yaml").write_text(printed)
    assert read_job("merged.yaml") == read_job("both.yaml")


@pytest.mark.usefixtures("files")
def test_explain_says_where_each_value_comes_from() -> None:
    code, printed, _ = run("explain", "-f", "job.yaml", "--template", "cpu.yaml")
    assert code == 0
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    assert 'spec.image "python:3.12-slim" ClusterTrainingTemplate cpu the job does not set it' in lines
    assert "spec.nodes 2 job the job sets it" in lines
    assert any(line.startswith('spec.env[1] {"name": "LEVEL", "value": "3"} job') for line in lines)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (("job.yaml", "--template", "cpu.yaml"), 0, "job.yaml: hello is valid"),
        (("cpu.yaml",), 0, "cpu.yaml: ClusterTrainingTemplate cpu is valid"),
        (("both.yaml",), 0, "both.yaml: hello is valid"),
        (("job.yaml",), 1, "job.yaml:5: spec.templateRef: ClusterTrainingTemplate cpu is in no file; name its file"),
    ],
)
def test_validate(arguments: tuple[str, ...], code: int, expected: str) -> None:
    found, printed, errors = run("validate", "-f", *arguments)
    assert (found, expected in printed + errors) == (code, True), printed + errors


@pytest.mark.usefixtures("files")
def test_a_problem_of_the_job_has_its_line_and_one_of_the_template_its_name() -> None:
    Path("job.yaml").write_text(JOB.replace("name: LEVEL", "name: RANK"))
    Path("cpu.yaml").write_text(TEMPLATE.replace("direct: {}", "mpi: {args: [x]}"))
    _, _, errors = run("validate", "-f", "job.yaml", "--template", "cpu.yaml")
    assert "job.yaml:9: spec.env[1].name: found" in errors
    assert "job.yaml: spec.launcher.mpi.args[0]: found" in errors
    assert "(the value comes from ClusterTrainingTemplate cpu)" in errors


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("file", "templates", "expected"),
    [
        ("job.yaml", ("job.yaml",), "found no TrainingTemplate"),
        ("both.yaml", ("cpu.yaml",), "ClusterTrainingTemplate cpu is there twice"),
        ("job.yaml", ("none.yaml",), "none.yaml: No such file"),
        ("plain.yaml", ("cpu.yaml",), "the job has no spec.templateRef; remove --template"),
    ],
)
def test_templates_that_do_not_fit(file: str, templates: tuple[str, ...], expected: str) -> None:
    Path("plain.yaml").write_text(JOB.replace("templateRef: {kind: ClusterTrainingTemplate, name: cpu}", "spares: 0"))
    with pytest.raises(BadInput, match=expected):
        read_job(file, templates)
