"""Measures a restart on the cluster of `make cluster`: from the SIGKILL of a rank until all ranks run and train again.

    make cluster
    PYTHONPATH=tests python bench/cluster_restart.py [--times 20] [--launcher torchrun] [--nodes 2] [--ranks 2]

An operator of this checkout runs as a process of this machine. Jobs of four kinds run in turn, so that other work on
the machine affects all alike: `restartScope` InPlace and Pods, `warmStart` Auto and Off. Each trains a layer with gloo,
and rank 1 kills itself once all ranks have made a step. The times are those of the ranks' own clock, which both nodes
of this cluster share:

- `apply_to_step`: from `kubectl apply` until the last rank has made its first step;
- `kill_to_start`: from the SIGKILL until the last rank of the next attempt executes its first line;
- `kill_to_step`: until the last rank of the next attempt has made its first step;
- `seconds_lost`: of the status, as the operator measures it, until all ranks run.

Prints one JSON line.
"""

import argparse
import json
import statistics
import tempfile
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from cluster.bench_site import operated_namespace, template
from cluster.operator.cluster_jobs import Jobs

SCRIPT = """
import time
began = time.time()
import os, pathlib, signal
import torch
import torch.distributed as dist

def record(what, at):
    pathlib.Path("/bench", f"{what}-{os.environ['MUSTER_ATTEMPT']}-{os.environ['RANK']}").write_text(repr(at))

record("start", began)
dist.init_process_group("gloo")
layer = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
layer(torch.ones(4, 8)).sum().backward()
optimizer.step()
record("step", time.time())
dist.barrier()
if os.environ["MUSTER_ATTEMPT"] == "1":
    if os.environ["RANK"] == "1":
        time.sleep(1)  # until the operator has seen that all ranks run
        record("kill", time.time())
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(600)
dist.destroy_process_group()
"""


@dataclass(frozen=True)
class Variant:
    """What differs between the jobs."""

    restart_scope: str
    warm_start: str

    @property
    def name(self) -> str:
        """The variant's name in the result."""
        return f"{self.restart_scope}, {'warm' if self.warm_start == 'Auto' else 'cold'}"


VARIANTS = tuple(Variant(scope, warm) for warm in ("Auto", "Off") for scope in ("InPlace", "Pods"))


@dataclass(frozen=True)
class Shape:
    """The size and the launcher of the jobs."""

    launcher: str
    nodes: int
    ranks: int


@dataclass(frozen=True)
class Seconds:
    """The times of one job; see the module."""

    apply_to_step: float
    kill_to_start: float
    kill_to_step: float
    seconds_lost: float


def measure(jobs: Jobs, shape: Shape, variant: Variant, folder: Path) -> Seconds:
    """Run a job whose first attempt fails, and delete it. Its ranks write their times to `folder`."""
    name = f"restart-{uuid.uuid4().hex[:6]}"
    (folder / "train.py").write_text(SCRIPT, encoding="ascii")
    applied_at = time.time()
    jobs.apply(
        name,
        command=["python3", "/bench/train.py"],
        nodes=shape.nodes,
        procsPerNode=shape.ranks,
        launcher={shape.launcher: {}},
        failurePolicy={"maxRestarts": 1, "restartScope": variant.restart_scope},
        warmStart=variant.warm_start,
        template=template(folder, grace_seconds=2),
    )
    jobs.wait(name, "condition=Complete")
    (restart,) = jobs.status(name)["restarts"]["history"]
    jobs.run("delete", f"dtj/{name}")
    killed_at = newest(folder, "kill-1")
    return Seconds(
        apply_to_step=newest(folder, "step-1") - applied_at,
        kill_to_start=newest(folder, "start-2") - killed_at,
        kill_to_step=newest(folder, "step-2") - killed_at,
        seconds_lost=float(restart["secondsLost"]),
    )


def newest(folder: Path, event: str) -> float:
    """Return the latest time of an event over all ranks (Unix seconds)."""
    return max(float(path.read_text(encoding="ascii")) for path in folder.glob(f"{event}-*"))


def summarise(values: Sequence[float]) -> dict[str, float]:
    """Return the minimum, the median and the maximum in seconds."""
    figures = {"min": min(values), "median": statistics.median(values), "max": max(values)}
    return {name: round(value, 2) for name, value in figures.items()}


def measure_all(jobs: Jobs, shape: Shape, times: int) -> dict[Variant, list[Seconds]]:
    """Measure each variant `times` times, in turn."""
    measured: dict[Variant, list[Seconds]] = {variant: [] for variant in VARIANTS}
    for _ in range(times):
        for variant, seconds in measured.items():
            with tempfile.TemporaryDirectory() as folder:
                seconds.append(measure(jobs, shape, variant, Path(folder)))
    return measured


def main() -> None:
    """Start an operator, measure, and print the result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--launcher", choices=("torchrun", "direct"), default="torchrun")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--ranks", type=int, default=2)
    options = parser.parse_args()
    shape = Shape(options.launcher, options.nodes, options.ranks)
    with operated_namespace() as (kubectl, namespace):
        measured = measure_all(Jobs(kubectl, namespace), shape, options.times)
    result = {
        variant.name: {
            field.name: summarise([getattr(each, field.name) for each in seconds]) for field in fields(Seconds)
        }
        for variant, seconds in measured.items()
    }
    print(json.dumps({"bench": "cluster_restart", **asdict(shape), "times": options.times, **result}))


main()
