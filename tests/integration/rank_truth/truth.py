"""Runs a job with `muster run` and returns the result: the status, the time, and remaining processes."""

import json
import os
import pathlib
import sys
import uuid
from dataclasses import dataclass
from typing import Any

from support.marked_processes import wait_for_exit
from support.muster_process import run_muster

HERE = pathlib.Path(__file__).parent
WORKLOAD = str(HERE / "workload.py")
TORCH_WORKLOAD = str(HERE / "torch_workload.py")


@dataclass(frozen=True)
class Truth:
    """The output and the remaining processes of a finished run."""

    exit_code: int
    status: dict[str, Any]
    stderr: str
    left: tuple[str, ...]  # command lines of processes that were still there 20 s after the end

    @property
    def message(self) -> str:
        return str(self.status["message"])

    def ranks(self, state: str) -> str:
        """Return the ranks in `state`, in the status' format: "0-3,5"; "" for none."""
        return next((str(entry["ranks"]) for entry in self.status["ranks"]["byState"] if entry["state"] == state), "")

    def detail(self, rank: int) -> dict[str, Any]:
        details: list[dict[str, Any]] = self.status["ranks"].get("details", [])
        return next(entry for entry in details if entry["rank"] == rank)

    @property
    def failed_reason(self) -> str:
        return next(
            str(c["reason"]) for c in self.status["conditions"] if c["type"] == "Failed" and c["status"] == "True"
        )


@dataclass(frozen=True)
class Case:
    """A job of `nodes` x `procs` ranks; `mark` identifies its processes on the machine."""

    launcher: str
    command: tuple[str, ...]
    nodes: int = 2
    procs: int = 2

    def document(self, folder: pathlib.Path, mark: str) -> dict[str, Any]:
        return {
            "apiVersion": "muster.dev/v1alpha1",
            "kind": "DistributedTrainingJob",
            "metadata": {"name": "truth"},
            "spec": {
                "nodes": self.nodes,
                "procsPerNode": self.procs,
                "launcher": {self.launcher: {}},
                "command": list(self.command),
                "env": [{"name": "TRUTH_DIR", "value": str(folder)}, {"name": "TRUTH_MARK", "value": mark}],
            },
        }


def run(case: Case, folder: pathlib.Path) -> Truth:
    """Run the job to its end, in `folder`."""
    mark = f"truth-{uuid.uuid4()}"
    job = folder / "job.yaml"
    job.write_text(json.dumps(case.document(folder, mark)))
    environment = {**os.environ, "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = run_muster("run", "-f", str(job), "--dir", str(folder / "out"), "-o", "json", env=environment)
    left = tuple(wait_for_exit(mark))
    assert done.output, f"muster run printed no resource; it said:\n{done.messages}"
    return Truth(done.exit_code, json.loads(done.output)["status"], done.messages, left)
