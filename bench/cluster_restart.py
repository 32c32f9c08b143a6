"""Measures a restart on the cluster of `make cluster`: from the SIGKILL of a rank until all ranks run and train again.

    make cluster
    PYTHONPATH=tests:tools python bench/cluster_restart.py [--times 20] [--launchers direct torchrun mpi]
        [--scopes InPlace Pods] [--warm-starts Auto Off] [--nodes 2] [--ranks 2] [--samples FILE]

An operator of this checkout runs as a process of this machine. Jobs of all kinds run in turn, so that other work on
the machine affects all alike: each launcher with `restartScope` InPlace and Pods, and with `warmStart` Auto and Off.
MPI has no warm start. Each job trains a layer with gloo, and rank 1 kills itself once all ranks have made a step. The
times are those of the ranks' own clock, which both nodes of this cluster share:

- `apply_to_step`: from `kubectl apply` until the last rank has made its first step;
- `kill_to_launchers`: from the SIGKILL until the first process of the next attempt runs on the last node, within the
  10 ms of the kernel's process times;
- `kill_to_ranks`: until the last rank of the next attempt executes its first line;
- `kill_to_step`: until the last rank of the next attempt has made its first step;
- `seconds_lost`: of the status, as the operator measures it, until all ranks run.

`--samples` appends each job's times to a file, and the result is that of all samples in it. So the measurement can be
continued later. Prints one JSON line for each kind of job.
"""

import argparse
import json
import statistics
import tempfile
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster.bench_site import operated_namespace, template
from cluster.mpi.pod_installs import pod_install
from cluster.operator.cluster_jobs import Jobs

LAUNCHERS = ("direct", "torchrun", "mpi")
SCOPES = ("InPlace", "Pods")
WARM_STARTS = ("Auto", "Off")
MPI = "openmpi5"

SCRIPT = """
import time
began = time.time()
import os, pathlib, signal
import torch
import torch.distributed as dist

def record(what, at):
    pathlib.Path("/bench", f"{what}-{os.environ['MUSTER_ATTEMPT']}-{os.environ['RANK']}").write_text(repr(at))

def launcher_start():
    # The agent makes the attempt's socket just before it starts the attempt's first process.
    socket_made = os.stat(os.environ["MUSTER_AGENT_SOCKET"]).st_mtime
    boot = time.time() - float(pathlib.Path("/proc/uptime").read_text().split()[0])
    starts = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            ticks = int(stat.read_text().rpartition(")")[2].split()[19])
        except OSError:
            continue
        starts.append(boot + ticks / os.sysconf("SC_CLK_TCK"))
    return min(start for start in starts if start > socket_made - 0.02)

record("start", began)
record("launcher", launcher_start())
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


SECONDS = ("apply_to_step", "kill_to_launchers", "kill_to_ranks", "kill_to_step", "seconds_lost")


@dataclass(frozen=True)
class Variant:
    """What differs between the jobs."""

    launcher: str
    restart_scope: str
    warm_start: str

    @property
    def name(self) -> str:
        """The variant's name in the result."""
        return f"{self.launcher}, {self.restart_scope}, {'warm' if self.warm_start == 'Auto' else 'cold'}"


def list_variants(launchers: Sequence[str], scopes: Sequence[str], warm_starts: Sequence[str]) -> list[Variant]:
    """Return the kinds of jobs, in the order in which they run."""
    return [
        Variant(launcher, scope, warm_start)
        for launcher in launchers
        for warm_start in (("Off",) if launcher == "mpi" else warm_starts)
        for scope in scopes
    ]


def measure(jobs: Jobs, nodes: int, ranks: int, variant: Variant, folder: Path) -> dict[str, float]:
    """Run a job whose first attempt fails, and delete it. Its ranks write their times to `folder`."""
    name = f"restart-{uuid.uuid4().hex[:6]}"
    (folder / "train.py").write_text(SCRIPT, encoding="ascii")
    applied_at = time.time()
    jobs.apply(
        name,
        command=["python3", "/bench/train.py"],
        nodes=nodes,
        procsPerNode=ranks,
        launcher={variant.launcher: {}},
        failurePolicy={"maxRestarts": 1, "restartScope": variant.restart_scope},
        warmStart=variant.warm_start,
        template=template(folder, grace_seconds=2, mpi=pod_install(MPI) if variant.launcher == "mpi" else None),
    )
    jobs.wait(name, "condition=Complete")
    (restart,) = jobs.status(name)["restarts"]["history"]
    jobs.run("delete", f"dtj/{name}")
    killed_at = find_newest_time(folder, "kill-1")
    times = (
        find_newest_time(folder, "step-1") - applied_at,
        *(find_newest_time(folder, f"{event}-2") - killed_at for event in ("launcher", "start", "step")),
        float(restart["secondsLost"]),
    )
    return dict(zip(SECONDS, times, strict=True))


def find_newest_time(folder: Path, event: str) -> float:
    """Return the latest time of an event over all ranks (Unix seconds)."""
    return max(float(path.read_text(encoding="ascii")) for path in folder.glob(f"{event}-*"))


def summarise(values: Sequence[float]) -> dict[str, float]:
    """Return the minimum, the median and the maximum in seconds."""
    figures = {"min": min(values), "median": statistics.median(values), "max": max(values)}
    return {name: round(value, 2) for name, value in figures.items()}


def read_options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--launchers", nargs="+", choices=LAUNCHERS, default=LAUNCHERS)
    parser.add_argument("--scopes", nargs="+", choices=SCOPES, default=SCOPES)
    parser.add_argument("--warm-starts", nargs="+", choices=WARM_STARTS, default=WARM_STARTS)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--samples", type=Path)
    return parser.parse_args()


def main() -> None:
    """Start an operator, measure, and print the result."""
    options = read_options()
    with tempfile.NamedTemporaryFile("a+", encoding="ascii") as unnamed, operated_namespace() as (kubectl, namespace):
        path = options.samples or Path(unnamed.name)
        for _ in range(options.times):
            for variant in list_variants(options.launchers, options.scopes, options.warm_starts):
                with tempfile.TemporaryDirectory() as folder:
                    seconds = measure(Jobs(kubectl, namespace), options.nodes, options.ranks, variant, Path(folder))
                with path.open("a", encoding="ascii") as file:
                    file.write(json.dumps({"kind": variant.name, **seconds}) + "\n")
        samples = [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]
    for kind in dict.fromkeys(sample["kind"] for sample in samples):
        of_kind = [sample for sample in samples if sample["kind"] == kind]
        figures = {name: summarise([sample[name] for sample in of_kind]) for name in SECONDS}
        shape = {"nodes": options.nodes, "ranks": options.ranks, "times": len(of_kind)}
        print(json.dumps({"bench": "cluster_restart", "kind": kind, **shape, **figures}))


main()
