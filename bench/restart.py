"""Measures how long a restart takes: from the end of a killed rank until all ranks of the next attempt run.

    python bench/restart.py [--times 20] [--nodes 2] [--ranks 2] [--launcher direct] [--scopes InPlace]

`muster run` runs jobs with restartScope InPlace and Pods in turns, so that other load affects both. Here a pod is an
agent's process. A rank kills itself with SIGKILL once all ranks of the first attempt run. The times are `secondsLost`
of the status. Prints one JSON line. The ranks' script imports nothing that Python has not imported already: each import
of a rank would count as part of the restart.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

MUSTER = Path(sys.executable).with_name("muster")
SCOPES = ("InPlace", "Pods")

SCRIPT = """
import os, sys, time
rank = int(os.environ.get("RANK") or os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["PMI_RANK"])
folder, world = os.environ["SM_OUTPUT_DIR"], int(sys.argv[1])
if os.environ["MUSTER_ATTEMPT"] == "1":
    open(os.path.join(folder, str(rank)), "w").close()
    while rank == 0 and len(os.listdir(folder)) < world:
        time.sleep(0.02)
    if rank > 0:
        time.sleep(600)
    os.kill(os.getpid(), 9)
time.sleep(0.5)
"""


@dataclass(frozen=True)
class Shape:
    """The size and launcher of the job."""

    nodes: int
    ranks: int
    launcher: str


def measure_seconds_lost(folder: Path, shape: Shape, scope: str) -> float:
    """Run a job that fails once. Returns the seconds that it lost."""
    script, file = folder / "train.py", folder / "job.yaml"
    script.write_text(SCRIPT)
    command = ["python", str(script), str(shape.nodes * shape.ranks)]
    spec = {
        "nodes": shape.nodes,
        "procsPerNode": shape.ranks,
        "launcher": {shape.launcher: {}},
        "command": command,
        "failurePolicy": {"maxRestarts": 1, "restartScope": scope},
    }
    metadata = {"name": "again"}
    job = {"apiVersion": "muster.dev/v1alpha1", "kind": "DistributedTrainingJob", "metadata": metadata, "spec": spec}
    file.write_text(json.dumps(job))
    arguments = [str(MUSTER), "run", "-f", str(file), "--dir", str(folder / "run"), "-o", "json"]
    completed = subprocess.run(arguments, env=os.environ, check=True, capture_output=True, text=True)
    (record,) = json.loads(completed.stdout)["status"]["restarts"]["history"]
    return float(record["secondsLost"])


def summarize(times: Sequence[float]) -> dict[str, float]:
    """Return the minimum, the median and the maximum in seconds."""
    return {"min": min(times), "median": round(statistics.median(times), 3), "max": max(times)}


def main() -> None:
    """Measure both scopes and print the result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--launcher", default="direct")
    parser.add_argument("--scopes", nargs="+", choices=SCOPES, default=SCOPES)
    options = parser.parse_args()
    shape = Shape(options.nodes, options.ranks, options.launcher)
    times: dict[str, list[float]] = {scope: [] for scope in options.scopes}
    for _ in range(options.times):
        for scope, seconds in times.items():
            with tempfile.TemporaryDirectory() as folder:
                seconds.append(measure_seconds_lost(Path(folder), shape, scope))
    result = {scope: summarize(values) for scope, values in times.items()}
    if len(result) == len(SCOPES):
        result["ratio"] = {"median": round(result["Pods"]["median"] / result["InPlace"]["median"], 2)}
    sys.stdout.write(json.dumps({**asdict(shape), "times": options.times, **result}) + "\n")


main()
