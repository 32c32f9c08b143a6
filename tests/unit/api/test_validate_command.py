"""The output of `muster validate` and `muster crd`."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from muster.api.crd import PLURALS, format_crd_yaml
from muster.api.document import JSON
from muster.cli.commands import app
from unit.api.api_resources import as_text, full_resource, resource, spec


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_valid_file(here: Path) -> None:
    (here / "job.yaml").write_text(as_text(full_resource()))
    result = CliRunner().invoke(app, ["validate", "-f", "job.yaml"])
    assert (result.exit_code, result.stdout, result.stderr) == (0, "job.yaml: digits is valid\n", "")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"image": "i", "network": {"efa": "All"}}, "spec.network.efa is All, and the job names no"),
        (
            {"image": "i", "network": {"efa": "All"}, "nodePool": {"instanceType": "g5.xlarge"}},
            "spec.network.efa is All, and a g5.xlarge has no EFA devices",
        ),
        (
            {"image": "i", "nodePool": {"name": "p5"}},
            "spec.nodePool.name: found p5; this pool is in the operator's configuration",
        ),
        ({}, "no image"),
    ],
)
def test_what_a_cluster_would_refuse_is_said_of_a_valid_job(here: Path, changes: dict[str, JSON], says: str) -> None:
    (here / "job.yaml").write_text(as_text(resource(spec=spec(**changes))))
    result = CliRunner().invoke(app, ["validate", "-f", "job.yaml"])
    assert (result.exit_code, result.stdout) == (0, "job.yaml: digits is valid\n")
    assert result.stderr.startswith(f"job.yaml: a cluster can't run this job yet: {says}")
    assert len(result.stderr.splitlines()) == 1


def test_each_problem_is_a_line_with_its_place(here: Path) -> None:
    text = "apiVersion: muster.dev/v1alpha1\nkind: DistributedTrainingJob\nmetadata: {name: a}\nspec:\n  nodes: 0\n"
    (here / "job.yaml").write_text(text + "  launcher: {direct: {}}\n  command: [x]\n  nods: 1\n")
    result = CliRunner().invoke(app, ["validate", "-f", "job.yaml"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines() == [
        "job.yaml:5: spec.nodes: found 0; allowed are 1 to 10000",
        "job.yaml:8: spec.nods: unknown field; did you mean nodes?",
    ]


def test_standard_input() -> None:
    result = CliRunner().invoke(app, ["validate", "-f", "-"], input=as_text(resource(spec=spec(nodes=0))))
    assert result.exit_code == 1
    assert result.stderr == "standard input: spec.nodes: found 0; allowed are 1 to 10000\n"


def test_the_worst_of_several_files_decides(here: Path) -> None:
    (here / "good.yaml").write_text(as_text(full_resource()))
    (here / "bad.yaml").write_text("a: 1\na: 2\n")
    result = CliRunner().invoke(app, ["validate", "-f", "good.yaml", "-f", "bad.yaml", "-f", "missing.yaml"])
    assert result.exit_code == 2
    assert result.stdout == "good.yaml: digits is valid\n"
    assert result.stderr.splitlines() == [
        'bad.yaml:2: the key "a" occurs twice, first on line 1',
        "missing.yaml: No such file or directory",
    ]


def test_resources_of_other_kinds_are_named_and_passed_over(here: Path) -> None:
    other = "apiVersion: v1\nkind: ConfigMap\n"
    (here / "all.yaml").write_text(f"{other}---\n{as_text(full_resource())}\n")
    result = CliRunner().invoke(app, ["validate", "-f", "all.yaml"])
    assert (result.exit_code, result.stdout) == (0, "all.yaml: digits is valid\n")
    assert result.stderr == "all.yaml:1: not a DistributedTrainingJob; skipped\n"


@pytest.mark.parametrize("text", ["", "apiVersion: v1\nkind: ConfigMap\n", "a: 1\n---\nb: 2\n"])
def test_a_file_without_a_job_is_not_valid(here: Path, text: str) -> None:
    (here / "none.yaml").write_text(text)
    result = CliRunner().invoke(app, ["validate", "-f", "none.yaml"])
    assert result.exit_code == 1
    assert "DistributedTrainingJob" in result.stderr


def test_the_crds_are_printed_as_they_are() -> None:
    result = CliRunner().invoke(app, ["crd"])
    assert (result.exit_code, result.stdout) == (0, "---\n".join(map(format_crd_yaml, PLURALS)))


def test_one_crd_is_printed() -> None:
    result = CliRunner().invoke(app, ["crd", "trainingtemplates"])
    assert (result.exit_code, result.stdout) == (0, format_crd_yaml("trainingtemplates"))


def test_an_unknown_crd_is_an_error() -> None:
    result = CliRunner().invoke(app, ["crd", "jobs"])
    assert result.exit_code != 0
    assert "jobs: expected distributedtrainingjobs, trainingtemplates or" in str(result.exception or result.stderr)
