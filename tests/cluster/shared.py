"""The cluster as tests have it: started when the first test needs it, down at the end unless it ran before."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

import yaml

from cluster import images, lan, lifecycle, node, operator_image, packages, places, programs
from cluster.images import Image
from cluster.node import Machine

TESTS = Path(__file__).resolve().parents[1]
# A start builds what is missing; make has done that before.
START_SECONDS = 240
# kubectl's own, in what it's asked to wait for.
WAIT_SECONDS = 60

Manifest = Mapping[str, object]


class Cluster(Protocol):
    """A Kubernetes for tests."""

    kubeconfig: Path
    """The administrator's."""

    def up(self) -> None:
        """Have it there."""

    def operator_image(self) -> str:
        """The name of the operator's image, of this tree as it is, which the nodes have afterwards."""

    def close(self) -> None:
        """Leave the machine as it was."""


class SharedCluster:
    """The machine's own. `kept` says that it ran before the tests, which leave it as it is."""

    def __init__(self) -> None:
        self.kept = bool(lifecycle.running())
        self.kubeconfig = places.state().kubeconfig
        self._up = False

    def up(self) -> None:
        """Start it when it doesn't run."""
        if not self._up:
            # Tests that run side by side ask for it at the same time.
            self.command("up", f"--wait-seconds={START_SECONDS}")
            self._up = True

    def down(self) -> None:
        """Take it down."""
        self.command("down")
        self._up = False

    def close(self) -> None:
        """Leave the machine as it was."""
        if not self.kept:
            self.down()

    def operator_image(self) -> str:
        """Built without Docker."""
        image = operator_image.provide(self._machine().tools)
        self.load(image)
        return image.name

    def load(self, image: Image) -> None:
        """Have an image in the nodes."""
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
        """Run `python -m cluster ...` to its good end; what it said."""
        with self.begin(*arguments) as process:
            said, _ = process.communicate(timeout=START_SECONDS)
        assert process.returncode == 0, said
        return said


class Kubectl:
    """kubectl as the administrator."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self._command = [str(programs.find("kubectl")), f"--kubeconfig={kubeconfig}"]

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        """Run it to its good end; what it printed."""
        done = subprocess.run([*self._command, *arguments], check=False, capture_output=True, text=True, input=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def begin(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start a process that runs on, such as a watch; the caller ends it."""
        return subprocess.Popen([*self._command, *arguments], stdout=subprocess.PIPE, text=True)

    def apply(self, *manifests: Manifest) -> None:
        """Apply manifests."""
        self("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))

    def define(self, definition: str) -> None:
        """Have a CustomResourceDefinition as it is written, and wait until its resources are served.

        kubectl refuses to wait for a condition of an object without any: first wait for its names, then there are some.
        """
        metadata, spec = (yaml.safe_load(definition)[part] for part in ("metadata", "spec"))
        # Others may have applied it, or helm.
        self("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=definition)
        name = f"crd/{metadata['name']}"
        self.wait(f"jsonpath={{.status.acceptedNames.kind}}={spec['names']['kind']}", name)
        self.wait("condition=Established", name)

    def wait(self, condition: str, *objects: str) -> None:
        """Wait until objects have a condition."""
        self("wait", f"--for={condition}", f"--timeout={WAIT_SECONDS}s", *objects)
