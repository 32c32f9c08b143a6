"""How long ranks take to their first optimizer step on this machine, with and without warm start.

    python bench/warm_start.py [--times 5] [--nodes 2] [--ranks 2] [--launcher torchrun]

`muster run` runs a job in turn with `warmStart: Auto` and `Off`, so that other work on the machine affects both alike.
The job trains a layer with gloo. In its first attempt rank 1 kills itself with SIGKILL once all ranks have made a step.
`first` is the time from the start of `muster run` until the last rank has made its first step; `again` is the time from
the kill until the last rank has made the first step of the second attempt. Prints one JSON line.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

MUSTER = Path(sys.executable).with_name("muster")
WARM_STARTS = ("Auto", "Off")

SCRIPT = """
import os, pathlib, signal, time
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
layer = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
layer(torch.ones(4, 8)).sum().backward()
optimizer.step()
rank, attempt = os.environ["RANK"], os.environ["MUSTER_ATTEMPT"]
folder = pathlib.Path(os.environ["SM_OUTPUT_DIR"])
(folder / f"step-{attempt}-{rank}").write_text(repr(time.time()))
dist.barrier()
if attempt == "1":
    if rank == "1":
        (folder / "killed").write_text(repr(time.time()))
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(600)
dist.destroy_process_group()
"""


@dataclass(frozen=True)
class Shape:
    """The job that is measured."""

    nodes: int
    ranks: int
    launcher: str


@dataclass(frozen=True)
class Seconds:
    """From the start to the first step, and from the kill to the first step of the second attempt."""

    first: float
    again: float


def measure(folder: Path, shape: Shape, warm_start: str) -> Seconds:
    """Run a job whose first attempt fails."""
    script, file = folder / "train.py", folder / "job.yaml"
    script.write_text(SCRIPT)
    spec = {
        "nodes": shape.nodes,
        "procsPerNode": shape.ranks,
        "launcher": {shape.launcher: {}},
        "command": [sys.executable, str(script)],
        "failurePolicy": {"maxRestarts": 1},
        "warmStart": warm_start,
    }
    metadata = {"name": "warm"}
    job = {"apiVersion": "muster.dev/v1alpha1", "kind": "DistributedTrainingJob", "metadata": metadata, "spec": spec}
    file.write_text(json.dumps(job))
    began = time.time()
    arguments = [str(MUSTER), "run", "-f", str(file), "--dir", str(folder / "run"), "-o", "json"]
    subprocess.run(arguments, env=os.environ, check=True, capture_output=True)
    killed_at = _find_newest_time(folder, "killed")
    return Seconds(_find_newest_time(folder, "step-1-*") - began, _find_newest_time(folder, "step-2-*") - killed_at)


def _find_newest_time(folder: Path, pattern: str) -> float:
    return max(float(path.read_text()) for path in folder.glob(f"run/**/{pattern}"))


def summarise(times: Sequence[float]) -> dict[str, float]:
    """The least, the median and the most, in seconds."""
    figures = {"min": min(times), "median": statistics.median(times), "max": max(times)}
    return {name: round(value, 3) for name, value in figures.items()}


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--launcher", default="torchrun")
    options = parser.parse_args()
    shape = Shape(options.nodes, options.ranks, options.launcher)
    measured: dict[str, list[Seconds]] = {name: [] for name in WARM_STARTS}
    for _ in range(options.times):
        for name, seconds in measured.items():
            with tempfile.TemporaryDirectory() as folder:
                seconds.append(measure(Path(folder), shape, name))
    result = {
        name: {part: summarise([getattr(each, part) for each in seconds]) for part in ("first", "again")}
        for name, seconds in measured.items()
    }
    ratios = {
        part: round(result["Off"][part]["median"] / result["Auto"][part]["median"], 1) for part in ("first", "again")
    }
    print(json.dumps({"bench": "warm_start", **asdict(shape), "times": options.times, **result, "ratios": ratios}))


if __name__ == "__main__":
    main()
