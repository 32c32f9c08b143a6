"""A container of SDK 3's kind starts from its channels: the unpacked code, and the command with its arguments."""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from muster.api.document import JSON, Document
from muster.api.validation.validate import validate
from muster.render.sagemaker.image_facts import load_image_facts
from muster.render.sagemaker.request.render import render_request
from muster.render.sagemaker.request.settings import RequestSettings

PROGRAM = """\
import json, os, sys
names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "SM_CURRENT_HOST", "SM_CHANNELS", "NODE_RANK")
print(json.dumps([sys.argv[1:], os.getcwd(), {name: os.environ.get(name) for name in names}]))
"""


class Container:
    """The folders that SageMaker creates for a container, below a folder of the test."""

    def __init__(self, folder: Path, launcher: str) -> None:
        self.base = folder / "ml"
        result = render_request(
            validate(Document(resource(launcher))), RequestSettings("us-west-2", "1" * 12, "vit-1"), load_image_facts()
        )
        assert result.archive is not None
        self.uri = result.archive.uri
        for uri, content in result.archive.objects.items():
            # the script's own paths, changed to the test's folder
            self._write(f"input/data/sm_drivers/{Path(uri).name}", content.replace(b"/opt/ml", str(self.base).encode()))
        self._write("input/data/code/train.py", PROGRAM.encode())
        code = self.base / "input" / "data" / "code"
        with tarfile.open(code / "sourcedir.tar.gz", "w:gz") as archive:
            archive.add(code / "train.py", "train.py")
        (code / "train.py").unlink()
        hosts: JSON = {"hosts": ["algo-1", "algo-2"], "current_host": "algo-2"}
        self._write("input/config/resourceconfig.json", json.dumps(hosts).encode())
        started = result.body["AlgorithmSpecification"]
        assert isinstance(started, dict)
        self.words = [*texts(started["ContainerEntrypoint"]), *texts(started["ContainerArguments"])]

    def start(self) -> "subprocess.CompletedProcess[str]":
        """Start it as SageMaker does."""
        words = [word.replace("/opt/ml", str(self.base)) for word in self.words]
        path = f"{Path(sys.executable).parent}:{os.defpath}"
        environment = {"PATH": path, "SAGEMAKER_BASE_DIR": str(self.base)}
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=60)

    def _write(self, name: str, content: bytes) -> None:
        path = self.base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def texts(value: JSON) -> list[str]:
    assert isinstance(value, list)
    return [str(word) for word in value]


def resource(launcher: str) -> JSON:
    return {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "DistributedTrainingJob",
        "metadata": {"name": "vit"},
        "spec": {
            "backend": "SageMaker",
            "nodes": 2,
            "procsPerNode": 1,
            "launcher": {launcher: {}},
            "image": "img:1",
            "command": ["python", "train.py"],
            "source": {"inline": {"files": {"train.py": PROGRAM}}},
            "hyperparameters": {"lr": 0.1, "name": "a b"},
            "sagemaker": {
                "region": "us-west-2",
                "role": "arn:aws:iam::111122223333:role/R",
                "instanceType": "ml.g5.xlarge",
                "start": "Channels",
                "rankReports": "Off",
            },
        },
    }


@pytest.mark.parametrize("launcher", ["perNode", "direct"])
def test_the_command_runs_in_the_codes_folder(tmp_path: Path, launcher: str) -> None:
    container = Container(tmp_path, launcher)
    done = container.start()
    assert done.returncode == 0, done.stderr
    words, folder, environment = json.loads(done.stdout)
    assert words == ["--lr", "0.1", "--name", "a b"]
    assert folder == str(container.base / "code")
    assert (environment["SM_CURRENT_HOST"], environment["MASTER_ADDR"], environment["NODE_RANK"]) == (
        "algo-2",
        "algo-1",
        "1",
    )
    assert environment["WORLD_SIZE"] == (None if launcher == "perNode" else "2")
    assert container.uri == "s3://sagemaker-us-west-2-111111111111/vit-1/input/code/sourcedir.tar.gz"


def test_mpi_without_the_toolkit_is_an_error(tmp_path: Path) -> None:
    done = Container(tmp_path, "mpi").start()
    assert done.returncode == 1
    assert "this image lacks: pip install sagemaker-training" in done.stderr
