"""The examples of training frameworks run on 2 nodes on gloo, as docs/frameworks.md says."""

import json
import os
import secrets
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster_dev.cache import install_folder
from support.example_runs import BIN, EXAMPLES, ROOT, finish, start
from support.progress_samples import find_lightning, find_transformers

STEPS = 40

RUN_SECONDS = 600
"""Each of four ranks imports a framework, which takes minutes on a machine that is busy with other tests."""


@dataclass(frozen=True)
class Framework:
    """An example, and the packages that it needs."""

    name: str
    find_packages: Callable[[], str]
    ranks_per_node: int = 2
    has_ranks_of_muster: bool = True


def find_deepspeed() -> str:
    """Return the folder of DeepSpeed, for PYTHONPATH; download it if necessary."""
    return str(install_folder("deepspeed", "deepspeed.txt"))


def find_ray() -> str:
    """Return the folder of Ray Train, for PYTHONPATH; download it if necessary."""
    return str(install_folder("ray", "ray.txt"))


FRAMEWORKS = (
    Framework("accelerate", find_transformers),
    # Each rank of DeepSpeed imports torch's compiler, which takes most of the time.
    Framework("deepspeed", find_deepspeed, ranks_per_node=1),
    Framework("lightning", find_lightning),
    # Ray starts the workers, so that muster sees one process of each node.
    Framework("ray_train", find_ray, ranks_per_node=1, has_ranks_of_muster=False),
)
"""Other tests run the example with Transformers: tests/integration/run/test_progress.py, and one on a cluster."""


def write_job(framework: Framework, folder: Path, temporary_folder: str) -> Path:
    """Write the example's job with few steps on 2 nodes, and with the packages of its own folder."""
    example = EXAMPLES / framework.name
    job = yaml.safe_load((example / "job.yaml").read_text(encoding="utf-8"))
    spec = job["spec"]
    spec |= {"nodes": 2, "procsPerNode": framework.ranks_per_node}
    spec["command"] = [sys.executable, str(example / "train.py")]
    spec["hyperparameters"] |= {"steps": STEPS}
    packages = framework.find_packages()
    variables = {"PYTHONPATH": packages, "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1"}
    # DeepSpeed compiles with the program ninja.
    variables |= {"PATH": f"{packages}/bin{os.pathsep}{os.environ['PATH']}", "TORCH_EXTENSIONS_DIR": str(folder)}
    # The paths of Ray's sockets are too long below `folder`.
    variables |= {"RAY_TMPDIR": temporary_folder, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    variables |= {"RAY_USAGE_STATS_ENABLED": "0"}
    spec["env"] = [{"name": name, "value": value} for name, value in variables.items()]
    path = folder / "job.yaml"
    path.write_text(json.dumps(job), encoding="utf-8")
    return path


def read_logs(folder: Path) -> str:
    """Return the output of all nodes, with the agents' own lines."""
    return "".join(path.read_text(encoding="utf-8") for path in sorted((folder / "logs").glob("*.log")))


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("framework", FRAMEWORKS, ids=lambda framework: framework.name)
def test_a_framework_trains_on_all_ranks(framework: Framework, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="r", ignore_cleanup_errors=True) as temporary_folder:
        job = write_job(framework, tmp_path, temporary_folder)
        command = [str(BIN / "muster"), "run", "-f", str(job), "-o", "json", "--logs", "--dir", str(tmp_path / "run")]
        end = finish(start(command, {}, ROOT), RUN_SECONDS)
    assert end.exit_code == 0, end.messages

    status: dict[str, Any] = json.loads(end.output)["status"]
    progress = status["progress"]
    assert (status["phase"], status["ranks"]["world"]) == ("Succeeded", 2 * framework.ranks_per_node), status["message"]
    assert "loss" in progress["metrics"]
    log = read_logs(tmp_path / "run")
    assert "loss" in log
    if framework.has_ranks_of_muster:
        assert (progress["step"], progress["percent"]) == (STEPS, 100)
        assert "fork server" not in log, "a rank was not forked from the process that has imported torch"
