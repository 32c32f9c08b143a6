"""Measures `muster restart` on the cluster of `make cluster`: from the start of the command until all ranks run again.

    make cluster
    PYTHONPATH=tests:tools python bench/requested_restart.py [--times 20] [--nodes 2] [--ranks 2] [--rerun]

With `--rerun` it measures `muster rerun` instead, which sends another script each time, with a warm start only.

An operator of this checkout runs as a process of this machine. One job of each kind trains a layer with gloo: launchers
`direct` and `torchrun`, `warmStart` Auto and Off. The command restarts them in turn, so that other work on the machine
affects all alike. The ranks' clock is this machine's. The times:

- `command_to_start`: until the last rank of the next attempt executes its first line;
- `command_to_step`: until the last rank has made its first step;
- `command`: until the command itself ends, since all ranks run.

Prints one JSON line.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from cluster.bench_site import operated_namespace, template
from cluster.muster_command import Muster
from cluster.operator.cluster_jobs import Jobs

SCRIPT = """
import time
began = time.time()
import os, pathlib
import torch
import torch.distributed as dist

def record(what, at):
    path = pathlib.Path("/bench", f"{what}-{os.environ['MUSTER_ATTEMPT']}-{os.environ['RANK']}")
    path.with_suffix(".new").write_text(repr(at))
    path.with_suffix(".new").rename(path)

record("start", began)
dist.init_process_group("gloo")
layer = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
layer(torch.ones(4, 8)).sum().backward()
optimizer.step()
record("step", time.time())
time.sleep(3600)
"""

WAIT_SECONDS = 120.0


@dataclass
class Case:
    """One job, and its measured times. Its ranks write their own to `create_folder`."""

    launcher: str
    warm_start: str
    create_folder: Path
    source: Path | None = None
    attempt: int = 1
    times: dict[str, list[float]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The job's name."""
        return f"{self.launcher}-{'warm' if self.warm_start == 'Auto' else 'cold'}"

    def apply(self, jobs: Jobs, nodes: int, ranks: int) -> None:
        """Create the job, and wait until its ranks have made a step."""
        (self.create_folder / "train.py").write_text(SCRIPT, encoding="ascii")
        jobs.apply(
            self.name,
            command=["python3", "/bench/train.py"],
            nodes=nodes,
            procsPerNode=ranks,
            launcher={self.launcher: {}},
            warmStart=self.warm_start,
            template=template(self.create_folder, grace_seconds=10),
        )
        self._wait_for("step", nodes * ranks)

    def restart(self, muster: Muster, world: int) -> None:
        """Restart the job once, with an edited script if it has a folder for it."""
        self.attempt += 1
        command = ["restart", self.name]
        if self.source is not None:
            command = ["rerun", self.name, "--source", str(self.source)]
            (self.source / "train.py").write_text(f"{SCRIPT}\n# edit {self.attempt}\n", encoding="ascii")
        began = time.time()
        done = muster(*command)
        ended = time.time()
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        started, stepped = self._wait_for("start", world), self._wait_for("step", world)
        for name, at in (("command_to_start", started), ("command_to_step", stepped), ("command", ended)):
            self.times.setdefault(name, []).append(at - began)

    def _wait_for(self, event: str, world: int) -> float:
        """Return the latest time of an event over all ranks of the attempt (Unix seconds)."""
        deadline = time.monotonic() + WAIT_SECONDS
        paths = [self.create_folder / f"{event}-{self.attempt}-{rank}" for rank in range(world)]
        while not all(path.exists() for path in paths):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name}: no {event} of attempt {self.attempt}")
            time.sleep(0.05)
        return max(float(path.read_text(encoding="ascii")) for path in paths)

    def summarize(self) -> dict[str, dict[str, float]]:
        """Return the minimum, the median and the maximum of each time in seconds."""
        figures: dict[str, Callable[[list[float]], float]] = {"min": min, "median": statistics.median, "max": max}
        return {
            name: {figure: round(compute(values), 2) for figure, compute in figures.items()}
            for name, values in self.times.items()
        }


def main() -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rerun", action="store_true")
    options = parser.parse_args()
    with ExitStack() as stack, operated_namespace() as (kubectl, namespace):

        def folder() -> Path:
            return Path(stack.enter_context(tempfile.TemporaryDirectory()))

        cases = [
            Case(launcher, warm_start, folder(), folder() if options.rerun else None)
            for launcher in ("direct", "torchrun")
            for warm_start in (("Auto",) if options.rerun else ("Auto", "Off"))
        ]
        muster = Muster(kubectl.kubeconfig, namespace)
        for case in cases:
            case.apply(Jobs(kubectl, namespace), options.nodes, options.ranks)
        for _ in range(options.times):
            for case in cases:
                case.restart(muster, options.nodes * options.ranks)
    result = {case.name: case.summarize() for case in cases}
    print(json.dumps({"bench": "requested_restart", **vars(options), **result}))


main()
