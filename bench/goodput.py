"""Measures goodput on the cluster of `make cluster`: two jobs at the same time, of which a rank is killed every minute.

    make cluster
    PYTHONPATH=tests:tools python bench/goodput.py [--seconds 330] [--every 60] [--launcher torchrun] > goodput.json
    python bench/goodput_plot.py < goodput.json > docs/goodput.svg

One job has `restartScope: InPlace`, the other one `Pods`; all else is equal. Each has two nodes with two ranks, makes a
step with gloo each 0.2 s, and saves every tenth one. Every 60 s after both jobs have made their first steps, rank 1
kills itself with SIGKILL; that of the first job 30 s earlier, so that one restart does not slow the other one. An
operator of this checkout runs as a process of this machine.

Prints one JSON line. For each job, `goodput` is that of its status at the end of `--seconds`, while it trains, and
`samples` has the seconds since the first steps and the goodput of the status at that time.
"""

import argparse
import json
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cluster.bench_site import operated_namespace, template
from cluster.operator.cluster_jobs import Jobs
from cluster.shared import Kubectl

SCRIPT = """
import os, pathlib, signal, time
import torch
import torch.distributed as dist
import muster_worker

folder, rank, attempt = pathlib.Path("/bench"), os.environ["RANK"], os.environ["MUSTER_ATTEMPT"]
dist.init_process_group("gloo")
layer = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
saved = folder / "saved"
step = int(saved.read_text()) if saved.exists() else 0
muster_worker.report(step=step)
while True:
    time.sleep(0.2)
    optimizer.zero_grad()
    layer(torch.ones(4, 8)).sum().backward()
    optimizer.step()
    step += 1
    muster_worker.report(step=step)
    (folder / f"began-{attempt}-{rank}").touch()
    if rank == "0" and step % 10 == 0:
        (folder / "new").write_text(str(step))
        (folder / "new").rename(saved)
    if rank == "1" and (folder / "kill").exists():
        (folder / "kill").unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    over = torch.tensor(int((folder / "over").exists()))
    dist.broadcast(over, 0)
    if over:
        break
dist.destroy_process_group()
"""

NODES, RANKS_PER_NODE = 2, 2
START_SECONDS = 300.0
SAMPLE_SECONDS = 1.0


@dataclass
class Case:
    """One of the jobs, the folder that it shares with this process, and its samples: seconds and status.goodput."""

    restart_scope: str
    folder: Path
    kills: list[float]
    samples: list[tuple[float, Mapping[str, Any]]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The job's name."""
        return f"goodput-{self.restart_scope.lower()}"

    @property
    def has_begun(self) -> bool:
        """Whether all ranks have made a step."""
        return len(list(self.folder.glob("began-1-*"))) == NODES * RANKS_PER_NODE

    def apply(self, jobs: Jobs, launcher: str, warm_start: str) -> None:
        """Create the job."""
        (self.folder / "train.py").write_text(SCRIPT, encoding="ascii")
        jobs.apply(
            self.name,
            command=["python3", "/bench/train.py"],
            nodes=NODES,
            procsPerNode=RANKS_PER_NODE,
            launcher={launcher: {}},
            warmStart=warm_start,
            failurePolicy={"maxRestarts": 1000, "restartScope": self.restart_scope},
            template=template(self.folder, grace_seconds=10),
        )

    def get_result(self, status: Mapping[str, Any]) -> dict[str, Any]:
        """Return the figures of the ended job."""
        history = status.get("restarts", {}).get("history", [])
        last = self.samples[-1][1]
        return {
            "phase": status["phase"],
            "goodput": {key: last[key] for key in ("ratio", "productiveSeconds", "totalSeconds", "lost")},
            "secondsLost": [entry.get("secondsLost") for entry in history],
            "stepsLost": [entry.get("stepsLost") for entry in history],
            "kills": [round(at, 1) for at in self.kills],
            "samples": [(round(at, 1), sample.get("ratio")) for at, sample in self.samples],
        }


def sample(jobs: Jobs, cases: Sequence[Case], seconds: float) -> None:
    """Read the goodput of all jobs."""
    listed = json.loads(jobs.run("get", "dtj", "--output=json"))["items"]
    goodputs = {entry["metadata"]["name"]: entry.get("status", {}).get("goodput", {}) for entry in listed}
    for case in cases:
        case.samples.append((seconds, goodputs[case.name]))


def run_jobs(jobs: Jobs, cases: Sequence[Case], seconds: float) -> None:
    """Let the jobs train for so many seconds after their first steps, with their kills, and wait until they end."""
    deadline = time.monotonic() + START_SECONDS
    while not all(case.has_begun for case in cases):
        if time.monotonic() > deadline:
            raise TimeoutError("a job has made no step")
        time.sleep(SAMPLE_SECONDS)
    began = time.monotonic()
    due = {case.name: list(case.kills) for case in cases}
    while (now := time.monotonic() - began) < seconds:
        for case in cases:
            if due[case.name] and now >= due[case.name][0]:
                due[case.name].pop(0)
                (case.folder / "kill").touch()
        sample(jobs, cases, now)
        time.sleep(SAMPLE_SECONDS)
    for case in cases:
        (case.folder / "over").touch()
    for case in cases:
        jobs.wait(case.name, "condition=Complete")


def find_versions(kubectl: Kubectl) -> dict[str, str]:
    """Return what the run depends on."""
    revision = subprocess.run(["git", "rev-parse", "--short", "HEAD"], check=True, capture_output=True, text=True)
    server = json.loads(kubectl("version", "--output=json"))["serverVersion"]["gitVersion"]
    return {"muster": revision.stdout.strip(), "kubernetes": server, "python": platform.python_version()}


def main() -> None:
    """Start an operator, measure, and print the result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=330.0)
    parser.add_argument("--every", type=float, default=60.0)
    parser.add_argument("--launcher", choices=("torchrun", "direct"), default="torchrun")
    parser.add_argument("--warm-start", choices=("Auto", "Off"), default="Auto")
    options = parser.parse_args()
    with (
        operated_namespace() as (kubectl, namespace),
        tempfile.TemporaryDirectory() as in_place,
        tempfile.TemporaryDirectory() as pods,
    ):
        jobs = Jobs(kubectl, namespace)
        kills = [options.every * number for number in range(1, int((options.seconds - 1) / options.every) + 1)]
        cases = [
            Case("InPlace", Path(in_place), [at - options.every / 2 for at in kills]),
            Case("Pods", Path(pods), kills),
        ]
        for case in cases:
            case.apply(jobs, options.launcher, options.warm_start)
        run_jobs(jobs, cases, options.seconds)
        result = {case.restart_scope: case.get_result(jobs.status(case.name)) for case in cases}
        versions = find_versions(kubectl)
    settings = {**vars(options), "nodes": NODES, "ranks": RANKS_PER_NODE, "cores": os.cpu_count(), **versions}
    print(json.dumps({"bench": "goodput", **settings, **result}))


main()
