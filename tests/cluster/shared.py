"""The cluster for tests: started when the first test needs it, stopped at the end unless it ran before."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import yaml

from cluster import images, lan, lifecycle, node, operator_image, packages, places, programs
from cluster.api_reader import get_reader
from cluster.images import Image
from cluster.node import Machine

TESTS = Path(__file__).resolve().parents[1]
# A start builds missing parts; make has done that before.
START_SECONDS = 240
# kubectl's own limit for its wait commands.
WAIT_SECONDS = 150

Manifest = Mapping[str, object]


class Cluster(Protocol):
    """A Kubernetes for tests."""

    kubeconfig: Path
    """The administrator's kubeconfig."""

    def up(self) -> None:
        """Start the cluster."""

    def operator_image(self) -> str:
        """Return the name of the operator's image of this tree; loads it into the nodes."""

    def close(self) -> None:
        """Stop it, if it was started by the tests."""


class SharedCluster:
    """The machine's own cluster. `kept`: it ran before the tests, so the tests don't stop it."""

    def __init__(self) -> None:
        self.kept = bool(lifecycle.running())
        self.kubeconfig = places.state().kubeconfig
        self._up = False

    def up(self) -> None:
        """Start the cluster if it doesn't run."""
        if not self._up:
            # Tests that run in parallel request it at the same time.
            self.command("up", f"--wait-seconds={START_SECONDS}")
            self._up = True

    def down(self) -> None:
        """Stop the cluster."""
        self.command("down")
        self._up = False

    def close(self) -> None:
        """Stop it, if it was started by the tests."""
        if not self.kept:
            self.down()

    def operator_image(self) -> str:
        """Build the image without Docker, and load it into the nodes."""
        image = operator_image.provide(self._machine().tools)
        self.load(image)
        return image.name

    def load(self, image: Image) -> None:
        """Load an image into the nodes for all pods."""
        self.up()
        machine, state = self._machine(), places.state()
        keepers = [int((state.node(each.name) / "keeper").read_bytes()) for each in lan.NODES]
        missing = [keeper for keeper in keepers if not node.has_image(machine, keeper, image.name)]
        if missing:
            with images.archive(image) as archive, ThreadPoolExecutor() as pool:
                list(pool.map(lambda keeper: node.load_image(machine, keeper, archive), missing))

    def _machine(self) -> Machine:
        with places.alone_in_cache():
            return Machine(programs.build(), packages.provide(), places.state())

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """Start `python -m cluster ...`, as make does."""
        return subprocess.Popen(
            [sys.executable, "-m", "cluster", *arguments],
            env=os.environ | {"PYTHONPATH": str(TESTS)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def command(self, *arguments: str) -> str:
        """Run `python -m cluster ...` to success; return its output."""
        with self.begin(*arguments) as process:
            said, _ = process.communicate(timeout=START_SECONDS)
        assert process.returncode == 0, said
        return said


class Kubectl:
    """kubectl as the administrator."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self._command = [str(programs.find("kubectl")), f"--kubeconfig={kubeconfig}"]
        self._reader = get_reader(kubeconfig)

    def read(self, path: str) -> Any:
        """Return an object or a list, as `kubectl get --raw` does, without a process."""
        return json.loads(self._reader.read(path))

    def apply_job(self, namespace: str, job: Manifest) -> None:
        """Apply a DistributedTrainingJob on the server's side, without a process if possible."""
        text, metadata = json.dumps(job), job["metadata"]
        assert isinstance(metadata, dict)
        if self._reader.is_direct:
            path = f"{build_job_path(namespace, metadata['name'])}?fieldManager=tests&force=true"
            self._reader.send("PATCH", path, text, "application/apply-patch+yaml")
        else:
            self("apply", "--server-side", "--force-conflicts", f"--namespace={namespace}", "-f", "-", stdin=text)

    def patch_job(self, namespace: str, name: str, patch: Manifest) -> None:
        """Send a merge patch for a DistributedTrainingJob, without a process if possible."""
        text = json.dumps(patch)
        if self._reader.is_direct:
            self._reader.send("PATCH", build_job_path(namespace, name), text, "application/merge-patch+json")
        else:
            self("patch", f"dtj/{name}", f"--namespace={namespace}", "--type=merge", f"--patch={text}")

    def read_job(self, namespace: str, name: str) -> Any:
        """Return a DistributedTrainingJob."""
        return self.read(build_job_path(namespace, name))

    def read_log(self, namespace: str, pod: str, container: str) -> str:
        """Return the log of a container so far, without a process."""
        return self._reader.read(f"/api/v1/namespaces/{namespace}/pods/{pod}/log?container={container}")

    def list(self, namespace: str, kind: str, selector: str) -> Any:
        """Return the objects of a kind of the core group, such as `pods`, without a process."""
        return self.read(f"/api/v1/namespaces/{namespace}/{kind}?labelSelector={quote(selector)}")["items"]

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        """Run it to success; return its output."""
        done = subprocess.run([*self._command, *arguments], check=False, capture_output=True, text=True, input=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def begin(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start a process that continues, such as a watch; the caller ends it."""
        return subprocess.Popen([*self._command, *arguments], stdout=subprocess.PIPE, text=True)

    def apply(self, *manifests: Manifest) -> None:
        """Apply manifests."""
        self("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))

    def define(self, definition: str) -> None:
        """Apply a CustomResourceDefinition, and wait until its resources are served.

        kubectl can't wait for a condition of an object without conditions: first wait for its accepted names.
        """
        metadata, spec = (yaml.safe_load(definition)[part] for part in ("metadata", "spec"))
        # Another test or helm may have applied it.
        self("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=definition)
        name = f"crd/{metadata['name']}"
        self.wait(f"jsonpath={{.status.acceptedNames.kind}}={spec['names']['kind']}", name)
        self.wait("condition=Established", name)

    def wait(self, condition: str, *objects: str) -> None:
        """Wait until objects have a condition."""
        self("wait", f"--for={condition}", f"--timeout={WAIT_SECONDS}s", *objects)


def build_job_path(namespace: str, name: str) -> str:
    """Return the path of a DistributedTrainingJob on the API server."""
    return f"/apis/muster.dev/v1alpha1/namespaces/{namespace}/distributedtrainingjobs/{name}"
