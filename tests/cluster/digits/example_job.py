"""The examples' own job files, with the changes that this cluster needs."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cluster.images import PULL_POLICY, PYTHON_IMAGE
from cluster.places import ROOT
from cluster.shared import Kubectl
from cluster.torch_volume import TorchVolume

EXAMPLES = ROOT / "training" / "examples"
PREPARE = EXAMPLES / "digits" / "prepare.py"


@dataclass(frozen=True)
class Surroundings:
    """This cluster's replacements for the example's: its image's packages, and the folder of the images."""

    packages: TorchVolume
    data: Path


def example_job(example: str, surroundings: Surroundings) -> dict[str, Any]:
    """Return the job of the example in that folder."""
    job: dict[str, Any] = yaml.safe_load((EXAMPLES / example / "job.yaml").read_text(encoding="utf-8"))
    inside = job["spec"]
    inside["image"] = PYTHON_IMAGE
    inside["command"][0] = "python3"
    # This machine has two cores, and others use them, too.
    inside["resources"] = {"requests": {"cpu": "100m", "memory": "500Mi"}}
    inside["env"] = [*surroundings.packages.env, {"name": "OMP_NUM_THREADS", "value": "1"}]
    for volume in _host_paths(inside.get("inputs", [])):
        volume["path"] = str(surroundings.data / Path(volume["path"]).name)
    pod = inside["template"]["spec"]
    pod["containers"][0]["imagePullPolicy"] = PULL_POLICY
    pod["containers"][0]["volumeMounts"] += surroundings.packages.mounts
    pod["volumes"] += surroundings.packages.volumes
    return job


def put_code(kubectl: Kubectl, namespace: str, example: str) -> str:
    """Create the ConfigMap with the script, as the example's comment shows; return its name."""
    name = f"{example.replace('_', '-')}-code"
    script = EXAMPLES / example / "train.py"
    kubectl("create", "configmap", name, f"--namespace={namespace}", f"--from-file={script}")
    return name


def _host_paths(inputs: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for each in inputs:
        yield each["volume"]["hostPath"]
