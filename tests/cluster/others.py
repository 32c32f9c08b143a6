"""Clusters that aren't our own: the user's, and one that kind creates with Docker."""

import json
import subprocess
import sys
from pathlib import Path

from cluster import places, programs, torch_volume
from cluster.choice import NamedCluster
from cluster.images import PYTHON_IMAGE
from cluster.places import ROOT
from cluster.say import CannotGoOn, say

KIND_NAME = "muster-tests"
KIND_OPERATOR_IMAGE = "cluster.muster.dev/operator:kind"
# The workers' Python must be the Python of the mounted torch.
WORKER = f"""\
FROM python:{sys.version_info.major}.{sys.version_info.minor}-slim
RUN apt-get update && apt-get install --yes --no-install-recommends iproute2
"""


class GivenCluster:
    """A user's cluster, used as it is."""

    def __init__(self, value: NamedCluster) -> None:
        self.kubeconfig = Path(value.kubeconfig)
        self._given = value

    def up(self) -> None:
        """Skip the tests if the cluster does not run."""

    def operator_image(self) -> str:
        """Return the image that the user has provided."""
        return self._given.operator_image

    def close(self) -> None:
        """Do nothing: the cluster continues to run."""


class KindCluster:
    """A cluster that kind creates for the tests and deletes afterwards. It doesn't need root."""

    def __init__(self) -> None:
        self.kubeconfig = places.state().folder.with_name("kind.kubeconfig")
        self._kind = ""

    def up(self) -> None:
        """Create the cluster, and load the workers' image."""
        if self._kind:
            return
        self._kind = str(programs.find("kind"))
        self.kubeconfig.parent.mkdir(parents=True, exist_ok=True)
        if KIND_NAME in run([self._kind, "get", "clusters"]).splitlines():
            raise CannotGoOn(f"kind has a cluster {KIND_NAME} already: `kind delete cluster --name {KIND_NAME}` first.")
        created = [self._kind, "create", "cluster", "--name", KIND_NAME, "--kubeconfig", str(self.kubeconfig)]
        say("making a cluster with kind")
        run([*created, "--config", "-", "--wait", "180s"], stdin=json.dumps(nodes()))
        run(["docker", "build", "--tag", PYTHON_IMAGE, "-"], stdin=WORKER)
        self._load(PYTHON_IMAGE)

    def operator_image(self) -> str:
        """Build the image with Docker from the Dockerfile, and load it."""
        self.up()
        run(["docker", "build", "--tag", KIND_OPERATOR_IMAGE, str(ROOT)])
        self._load(KIND_OPERATOR_IMAGE)
        return KIND_OPERATOR_IMAGE

    def close(self) -> None:
        """Delete the cluster."""
        if self._kind:
            run([self._kind, "delete", "cluster", "--name", KIND_NAME, "--kubeconfig", str(self.kubeconfig)])

    def _load(self, image: str) -> None:
        run([self._kind, "load", "docker-image", image, "--name", KIND_NAME])


def nodes() -> dict[str, object]:
    """kind's configuration: two workers that see the folders of torch on this machine."""
    mounts = [{"hostPath": folder, "containerPath": folder, "readOnly": True} for folder in torch_volume.folders()]
    worker = {"role": "worker", "extraMounts": mounts}
    kind = {"kind": "Cluster", "apiVersion": "kind.x-k8s.io/v1alpha4"}
    return {**kind, "nodes": [{"role": "control-plane"}, worker, worker]}


def run(command: list[str], stdin: str = "") -> str:
    """Run a command to success; return its output. Raises CannotGoOn with its output."""
    done = subprocess.run(command, check=False, capture_output=True, text=True, input=stdin)
    if done.returncode != 0:
        raise CannotGoOn(f"`{' '.join(command)}` failed:\n{(done.stdout + done.stderr).strip()}")
    return done.stdout
