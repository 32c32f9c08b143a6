"""`muster import` of manifests as a user runs it, and `muster run` of the imported jobs that need no GPU."""

import json
from pathlib import Path
from typing import Any

import pytest

from muster_dev.golden_manifests import FOLDER
from muster_dev.paths import ROOT
from support import mpi_installs, muster_process
from support.example_runs import clean_environment
from support.muster_process import EndedMuster

MANIFESTS = ROOT / FOLDER / "manifests"
RUNTIMES = ROOT / FOLDER / "runtimes"


def run_muster(*words: str, folder: Path = MANIFESTS) -> EndedMuster:
    return muster_process.run_muster(*words, cwd=folder, env=clean_environment())


def test_the_job_is_on_standard_output_and_notices_are_not() -> None:
    done = run_muster("import", "train_torch.yaml", "--runtime", str(RUNTIMES / "torch_distributed.yaml"))
    assert done.exit_code == 0
    assert done.output == (ROOT / FOLDER / "jobs" / "train_torch.yaml").read_text(encoding="utf-8")
    assert all(line.startswith("notice: ") for line in done.messages.splitlines())


def test_a_problem_names_file_line_and_field(tmp_path: Path) -> None:
    text = (MANIFESTS / "pytorch_simple.yaml").read_text(encoding="utf-8")
    (tmp_path / "job.yaml").write_text(text.replace("imagePullPolicy", "imagePolicy"), encoding="utf-8")
    done = run_muster("import", "job.yaml", folder=tmp_path)
    assert (done.exit_code, done.output) == (1, "")
    assert (
        "job.yaml:16: spec.pytorchReplicaSpecs.Master.template.spec.containers[0].imagePolicy: unknown field of a pod"
        in done.messages
    )
    assert done.messages.endswith("job.yaml: nothing is imported\n")


def test_a_file_of_other_resources_has_no_job(tmp_path: Path) -> None:
    (tmp_path / "map.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", encoding="utf-8")
    done = run_muster("import", "map.yaml", folder=tmp_path)
    assert (done.exit_code, done.output) == (1, "")
    assert done.messages.splitlines() == [
        "notice: map.yaml:1: ConfigMap is no training job; skipped: apply it yourself",
        "map.yaml: it has no training job",
    ]


def test_a_job_may_come_from_standard_input() -> None:
    done = muster_process.run_muster("import", "-", stdin=(MANIFESTS / "list.yaml").read_bytes())
    assert done.exit_code == 0
    assert done.output.startswith("# Imported from PyTorchJob first (standard input:4).\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.yaml"], "muster: none.yaml: No such file or directory"),
        (["list.yaml", "--runtime", "none.yaml"], "muster: none.yaml: No such file or directory"),
        (["list.yaml", "--aws-region", "us-west-2"], "takes only the option --runtime"),
        (["list.py", "--runtime", "list.yaml"], "--runtime works only with a manifest"),
        (["list.txt"], "list.txt: a manifest (.yaml), a script (.py) or a notebook (.ipynb) is expected"),
    ],
)
def test_bad_input_is_no_stack_trace(words: list[str], message: str) -> None:
    done = run_muster("import", *words)
    assert (done.exit_code, done.output) == (2, "")
    assert message in done.messages
    assert len(done.messages.splitlines()) == 1


def test_text_that_is_no_yaml_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("a: 1\nb: [\n", encoding="utf-8")
    done = run_muster("import", "job.yaml", folder=tmp_path)
    assert done.exit_code == 2
    assert done.messages.startswith("muster: job.yaml:")


# --- imported jobs run


def run_imported(name: str, folder: Path, variables: dict[str, str]) -> dict[str, Any]:
    """Import a manifest, run the first of its jobs on this machine, and return its status."""
    runtimes = [word for file in RUNTIMES.glob("*.yaml") for word in ("--runtime", str(file))]
    imported = run_muster("import", f"{name}.yaml", *runtimes)
    assert imported.exit_code == 0, imported.messages
    (folder / "job.yaml").write_text(imported.output.split("\n---\n")[0] + "\n", encoding="utf-8")
    words = ("run", "-f", "job.yaml", "-o", "json", "--dir", str(folder / "run"))
    end = muster_process.run_muster(*words, cwd=folder, env={**clean_environment(), **variables})
    assert end.exit_code == 0, end.messages
    status: dict[str, Any] = json.loads(end.output)["status"]
    return status


@pytest.mark.parametrize(
    ("name", "ranks"),
    [
        ("pytorch_simple", 2),
        ("job_set_replicas", 4),
        ("job_single", 1),
        ("list", 1),
        ("volcano_pytorch", 3),
        # Their torchruns import torch.
        pytest.param("train_cpu", 4, marks=pytest.mark.long),
        pytest.param("job_indexed", 4, marks=pytest.mark.long),
    ],
)
def test_an_imported_job_completes(name: str, ranks: int, tmp_path: Path) -> None:
    variables = {"JOB_COMPLETION_INDEX": "0"} if name == "job_indexed" else {}
    status = run_imported(name, tmp_path, variables)
    assert (status["phase"], status["ranks"]["world"]) == ("Succeeded", ranks)


def test_an_imported_mpi_job_completes(tmp_path: Path) -> None:
    variables = mpi_installs.install("openmpi5").add_to(clean_environment())
    status = run_imported("mpi_launcher_only", tmp_path, {**variables, "PYTHONPATH": variables["MPI4PY"]})
    assert (status["phase"], status["ranks"]["world"]) == ("Succeeded", 2)
