"""The workflows: actions are pinned, permissions are the least, and the steps run what the repository has."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster import choice
from muster_dev.paths import ROOT

FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
KIND = ROOT / ".github" / "workflows" / "kind.yml"


def read_steps(file: Path) -> list[dict[str, Any]]:
    workflow = yaml.safe_load(file.read_text(encoding="utf-8"))
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_actions_are_pinned_and_get_no_more_than_they_need(file: Path) -> None:
    text, steps = file.read_text(encoding="utf-8"), read_steps(file)
    used = re.findall(r"uses: (.*)", text)
    assert len(used) == len([step for step in steps if "uses" in step]) > 0
    for each in used:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each), each
    assert yaml.safe_load(text)["permissions"] == {}
    checkouts = [step for step in steps if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"] == {"persist-credentials": False} for step in checkouts)
    assert not [step for step in steps if "${{" in step.get("run", "")]


def test_the_workflow_of_kind_runs_the_pages_and_the_tests_on_kind() -> None:
    text = KIND.read_text(encoding="utf-8")
    jobs: dict[str, Any] = yaml.safe_load(text)["jobs"]
    assert all(job["permissions"] == {"contents": "read"} for job in jobs.values())
    assert jobs["tests"]["env"] == {choice.CLUSTER: choice.KIND}
    runs = "\n".join(step.get("run", "") for step in read_steps(KIND))
    pages = re.findall(r"docs/[\w-]+\.md", runs)
    assert pages == ["docs/quickstart-kind.md", "docs/quickstart.md"]
    for path in (*pages, "tests/integration/docs/page_script.py", "tests/cluster/binaries/kind/go.mod"):
        assert (ROOT / path).is_file()
    install, first_jobs = ((ROOT / page).read_text(encoding="utf-8") for page in pages)
    left_out = re.findall(r"^(docker|kind) .*(pytorch/pytorch\S*)", install, re.MULTILINE)
    assert [program for program, _ in left_out] == ["docker", "kind"]
    assert {image for _, image in left_out} == set(re.findall(r"pytorch/pytorch\S*", first_jobs))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(f"\n{target}:" in makefile for target in re.findall(r"make ([\w-]+)", runs))
    for path in re.findall(r"^ +- ([\w./*-]+)$", text.partition("paths:\n")[2].partition("schedule:")[0], re.MULTILINE):
        assert list(ROOT.glob(path)), path


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_actionlint_finds_nothing(file: Path) -> None:
    program = shutil.which("actionlint")
    if program is None:
        pytest.skip("actionlint is missing: go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.8")
    done = subprocess.run([program, "-no-color", str(file)], check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
