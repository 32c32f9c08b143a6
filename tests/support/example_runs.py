"""Runs the scripts of training/examples as users do."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "training" / "examples"
BIN = Path(sys.executable).parent

RUN_SECONDS = 240
"""On a machine that is busy with other tests a run takes many times as long as on an idle one."""


@dataclass(frozen=True)
class CompletedRun:
    """The result of a command."""

    exit_code: int
    output: str  # standard output
    messages: str  # standard error

    def parse_losses(self) -> list[float]:
        """Return the losses in the output, in their order."""
        words = self.output.split()
        return [float(word.removeprefix("loss=")) for word in words if word.startswith("loss=")]


def clean_environment() -> dict[str, str]:
    """Return this process' environment without variables that a script could use as its rank or data."""
    foreign = ("SM_", "PET_", "MUSTER_", "RANK", "LOCAL_", "WORLD_SIZE", "MASTER_", "GLOO_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    # Tests share the machine's cores, and these models are too small for threads.
    return environment | {"OMP_NUM_THREADS": "1"}


def start(command: list[str], variables: Mapping[str, str], directory: Path = ROOT) -> subprocess.Popen[str]:
    environment = {**clean_environment(), **variables}
    return subprocess.Popen(
        command, cwd=directory, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def finish(process: subprocess.Popen[str], seconds: float = RUN_SECONDS) -> CompletedRun:
    try:
        output, messages = process.communicate(timeout=seconds)
    finally:
        process.kill()
    return CompletedRun(process.returncode, output, messages)


def run_with_torchrun(ranks: int, example: str, arguments: list[str], variables: dict[str, str]) -> CompletedRun:
    """Run an example on `ranks` ranks of one node."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    return finish(start([*launcher, str(EXAMPLES / example / "train.py"), *arguments], variables))
