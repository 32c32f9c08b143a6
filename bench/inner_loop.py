"""Measures the inner loop of a day's work on the cluster of `make cluster`: from a changed file to the first step.

    make cluster
    PYTHONPATH=tests:tools python bench/inner_loop.py [--times 3] [--nodes 2] [--ranks 2]

An operator of this checkout runs as a process of this machine. A job trains a layer with torchrun and gloo. Three ways
bring each edit of its script to the ranks, in turn, so that other work on the machine affects all alike:

- `run`: `muster run --on cluster --source FOLDER --replace`, which deletes the job of the last edit;
- `rerun`: `muster rerun --source FOLDER`, while that job runs;
- `by_hand`: `kubectl delete` of an Indexed Job and its ConfigMap until no pod is left, `kubectl create configmap`,
  and `kubectl apply` of the Indexed Job with torchrun.

The time begins after the file was written, just before the first command, and ends when the last rank has made its
first step. The ranks' clock is this machine's. Prints each time on standard error, and one JSON line
at the end.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cluster.bench_site import operated_namespace, template
from cluster.images import PYTHON_IMAGE
from cluster.shared import Kubectl, Manifest

MUSTER = Path(sys.executable).with_name("muster")
NAME = "inner-loop"
BY_HAND = "by-hand"
GRACE_SECONDS = 10
WAIT_SECONDS = 180.0

SCRIPT = """
import os, pathlib, time
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
layer = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
layer(torch.ones(4, 8)).sum().backward()
optimizer.step()
path = pathlib.Path("/bench", f"EDIT-{os.environ['RANK']}")
path.with_suffix(".new").write_text(repr(time.time()))
path.with_suffix(".new").rename(path)
time.sleep(3600)
"""

TORCHRUN = (
    "exec python3 -m torch.distributed.run --nnodes {nodes} --nproc_per_node {ranks} "
    "--node_rank $JOB_COMPLETION_INDEX --master_addr by-hand-0.by-hand --master_port 29500 train.py"
)


@dataclass
class InnerLoop:
    """The cluster, the shape of the job, and the measured seconds of each way.

    `code` has the script; ranks write the times of their steps to `results`.
    """

    kubectl: Kubectl
    namespace: str
    nodes: int
    ranks: int
    code: Path
    results: Path
    seconds: dict[str, list[float]] = field(default_factory=dict)
    _edits: int = 0

    def measure(self, way: str, bring: Callable[[], "subprocess.Popen[bytes] | None"]) -> None:
        """Edit the script, bring it to the ranks, and wait for their first step."""
        self._edits += 1
        script = SCRIPT.replace("EDIT", f"edit-{self._edits}")
        (self.code / "train.py").write_text(script, encoding="ascii")
        began = time.time()
        command = bring()
        seconds = self._wait_for_step() - began
        self.seconds.setdefault(way, []).append(seconds)
        print(f"{way}: {seconds:.1f} s", file=sys.stderr, flush=True)
        if command is not None:
            # The command follows the job, which continues without it.
            command.kill()
            command.wait()

    def run(self) -> "subprocess.Popen[bytes]":
        """Begin to run the job, instead of the one of the last edit."""
        file = self.code.parent / "job.yaml"
        words = [
            "run",
            "--on",
            "cluster",
            "-f",
            str(file),
            "-n",
            self.namespace,
            "--source",
            str(self.code),
            "--replace",
        ]
        return subprocess.Popen([str(MUSTER), *words], env=self._environment, stderr=subprocess.DEVNULL)

    def rerun(self) -> None:
        """Send the edit to the running job."""
        words = ["rerun", NAME, "-n", self.namespace, "--source", str(self.code)]
        subprocess.run([str(MUSTER), *words], env=self._environment, check=True, capture_output=True)

    def apply_by_hand(self) -> None:
        """Replace the Indexed Job and its ConfigMap."""
        place = f"--namespace={self.namespace}"
        self.kubectl("delete", f"job/{BY_HAND}", place, "--cascade=foreground", "--ignore-not-found")
        self.kubectl("delete", f"configmap/{BY_HAND}", place, "--ignore-not-found")
        self.kubectl("create", "configmap", BY_HAND, f"--from-file={self.code}", place)
        self.kubectl("apply", "-f", "-", place, stdin=json.dumps(self._make_indexed_job()))

    def write_job(self) -> None:
        """Write the file of the job."""
        spec = {
            "nodes": self.nodes,
            "procsPerNode": self.ranks,
            "launcher": {"torchrun": {}},
            "image": PYTHON_IMAGE,
            "command": ["python3", "train.py"],
            "template": template(self.results, GRACE_SECONDS),
        }
        job = {"apiVersion": "muster.dev/v1alpha1", "kind": "DistributedTrainingJob", "metadata": {"name": NAME}}
        (self.code.parent / "job.yaml").write_text(json.dumps({**job, "spec": spec}), encoding="ascii")

    def create_service(self) -> None:
        """Create the headless Service of the Indexed Job, once."""
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": BY_HAND},
            "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"job-name": BY_HAND}},
        }
        self.kubectl("apply", "-f", "-", f"--namespace={self.namespace}", stdin=json.dumps(service))

    def _make_indexed_job(self) -> Manifest:
        pod: Any = template(self.results, GRACE_SECONDS)["spec"]
        (trainer,) = pod["containers"]
        trainer |= {
            "image": PYTHON_IMAGE,
            "workingDir": "/code",
            "command": ["sh", "-c", TORCHRUN.format(nodes=self.nodes, ranks=self.ranks)],
        }
        trainer["env"].append({"name": "OMP_NUM_THREADS", "value": "1"})
        trainer["env"].append({"name": "GLOO_SOCKET_IFNAME", "value": "eth0"})
        trainer["volumeMounts"].append({"name": "code", "mountPath": "/code"})
        pod["volumes"].append({"name": "code", "configMap": {"name": BY_HAND}})
        pod |= {"restartPolicy": "Never", "subdomain": BY_HAND}
        shape = {"completions": self.nodes, "parallelism": self.nodes, "completionMode": "Indexed", "backoffLimit": 0}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": BY_HAND}}
        return {**job, "spec": {**shape, "template": {"spec": pod}}}

    def _wait_for_step(self) -> float:
        """Return when the last rank had made its first step with this edit (Unix seconds)."""
        deadline = time.monotonic() + WAIT_SECONDS
        paths = [self.results / f"edit-{self._edits}-{rank}" for rank in range(self.nodes * self.ranks)]
        while not all(path.exists() for path in paths):
            if time.monotonic() > deadline:
                raise TimeoutError(f"no step of edit {self._edits}")
            time.sleep(0.05)
        return max(float(path.read_text(encoding="ascii")) for path in paths)

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, "KUBECONFIG": str(self.kubectl.kubeconfig)}


def main() -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--ranks", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, operated_namespace() as (kubectl, namespace):
        code, results = Path(folder, "code"), Path(folder, "results")
        code.mkdir()
        results.mkdir()
        loop = InnerLoop(kubectl, namespace, options.nodes, options.ranks, code, results)
        loop.write_job()
        loop.create_service()
        # The first round of each way has no pods to replace.
        for way, bring in (("run_first", loop.run), ("by_hand_first", loop.apply_by_hand)):
            loop.measure(way, bring)
        for _ in range(options.times):
            for way, bring in (("run", loop.run), ("rerun", loop.rerun), ("by_hand", loop.apply_by_hand)):
                loop.measure(way, bring)
    medians = {way: round(statistics.median(values), 2) for way, values in loop.seconds.items()}
    times = {way: [round(value, 2) for value in values] for way, values in loop.seconds.items()}
    shape = {"nodes": options.nodes, "ranks": options.ranks}
    print(json.dumps({"bench": "inner_loop", **shape, "seconds": times, "median": medians}))


if __name__ == "__main__":
    main()
