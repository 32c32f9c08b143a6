"""The pages about jobs on a cluster are correct: the tests run their commands in order, on small jobs with the same
names.
"""

import json
import re
import shlex
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from cluster.held_job import held_job, let_go
from cluster.images import PULL_POLICY, PYTHON_IMAGE
from cluster.installation import Installation
from cluster.muster_command import Muster
from cluster.places import ROOT
from cluster.shared import Kubectl
from cluster.torch_volume import NOTHING, TorchVolume

NAME = "hello"
JOB = f"dtj/{NAME}"
PAGES = ("logs.md", "suspend.md", "cleanup.md")


def text(page: str) -> str:
    return (ROOT / "docs" / page).read_text(encoding="utf-8")


def commands(page: str) -> list[str]:
    return [line for block in re.findall(r"```sh\n(.*?)```", text(page), re.DOTALL) for line in block.splitlines()]


@dataclass
class Reader:
    """Runs a page's commands in a namespace."""

    kubectl: Kubectl
    muster: Muster
    namespace: str

    def do(self, command: str) -> None:
        """Run a command of a page to its end, or until one that continues has printed something."""
        program, *words = shlex.split(command)
        if words[:2] == ["wait", "--for=condition=Complete"]:
            let_go(self.kubectl, self.namespace)
        if "--watch" in words or "--follow" in words:
            self._look(program, words)
        elif program == "kubectl":
            self.kubectl(*words, self.inside)
        else:
            self._ask(words)
        self._await(words)

    @property
    def inside(self) -> str:
        return f"--namespace={self.namespace}"

    def _look(self, program: str, words: list[str]) -> None:
        begun = self.kubectl.begin(*words, self.inside) if program == "kubectl" else self.muster.begin(*words)
        with begun as process:
            assert process.stdout is not None
            assert process.stdout.readline()
            process.terminate()

    def _ask(self, words: list[str]) -> None:
        done = self.muster(*words)
        assert done.returncode == 0, done.stderr

    def _await(self, words: list[str]) -> None:
        """Wait for the state that a reader of the page would wait for."""
        said = " ".join(words)
        if '"suspend": false' in said:
            self.kubectl.wait("jsonpath={.status.phase}=Running", JOB, self.inside)
        if '"suspend": true' in said:
            self.kubectl.wait("condition=Suspended", JOB, self.inside)


def reader_of(installed: Installation) -> Reader:
    return Reader(installed.kubectl, Muster(installed.kubectl.kubeconfig, installed.namespace), installed.namespace)


@pytest.mark.usefixtures("may_leave_temporary_files")  # a command that follows is killed
def test_the_pages_are_true(installed_operator: Installation) -> None:
    reader = reader_of(installed_operator)
    job = json.dumps(held_job(NAME, reader.namespace))
    reader.kubectl("apply", "-f", "-", reader.inside, stdin=job)
    reader.kubectl.wait("jsonpath={.status.phase}=Running", JOB, reader.inside)
    said = [command for page in PAGES for command in commands(page)]
    for command in said:
        reader.do(command)
    assert {command.split()[0] for command in said} == {"kubectl", "muster"}


def quick_start(name: str, torch: TorchVolume) -> dict[str, Any]:
    """Return the job of the quick start, with this cluster's image instead of the public one."""
    blocks = re.findall(r"```yaml\n(.*?)```", text("quickstart.md"), re.DOTALL)
    (job,) = (job for job in map(yaml.safe_load, blocks) if job["metadata"]["name"] == name)
    trainer = {"name": "trainer", "imagePullPolicy": PULL_POLICY, "volumeMounts": list(torch.mounts)}
    job["spec"]["image"] = PYTHON_IMAGE
    # Pods without requests wait for all others on a busy machine.
    job["spec"].setdefault("resources", {}).setdefault("requests", {"cpu": "100m"})
    job["spec"]["env"] = [*torch.env, {"name": "OMP_NUM_THREADS", "value": "1"}]
    job["spec"]["template"] = {"spec": {"containers": [trainer], "volumes": list(torch.volumes)}}
    return dict(job)


def follow_the_quick_start(installed: Installation, name: str, torch: TorchVolume) -> dict[str, str]:
    """Run its commands for a job in order; return their output."""
    reader = reader_of(installed)
    said: dict[str, str] = {}
    for command in commands("quickstart.md"):
        program, *words = shlex.split(command)
        if program != "kubectl" or name not in command:
            continue
        if words == ["apply", "-f", f"{name}.yaml"]:
            reader.kubectl("apply", "-f", "-", reader.inside, stdin=json.dumps(quick_start(name, torch)))
        else:
            said[" ".join(words[:2])] = reader.kubectl(*words, reader.inside)
    return said


def test_the_quick_starts_first_job_runs(installed_operator: Installation) -> None:
    said = follow_the_quick_start(installed_operator, "hello", NOTHING)
    assert "Succeeded" in said["get dtj"]
    assert "[rank 0] rank 0 of 4: step 10" in said["logs hello-0-0"]
    assert "hello" in said["delete dtj"]


def test_the_quick_starts_torchrun_job_runs(installed_operator: Installation, torch_for_pods: TorchVolume) -> None:
    said = follow_the_quick_start(installed_operator, "train", torch_for_pods)
    assert said["get dtj"].startswith("All 4 ranks succeeded at step 50")
    assert "[rank 0] loss=" in said["logs train-0-0"]
