"""A training run with the watch commands of a user."""

import contextlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cluster.digits.example_job import Surroundings, example_job, put_code
from cluster.muster_command import Muster
from cluster.shared import Kubectl
from cluster.terminal import Terminal

TRAINING_SECONDS = 240
NAME = "digits"
JOB = f"dtj/{NAME}"
# Enough steps to see the counter increase, and for the accuracy that the example requires.
EPOCHS = 12
COLUMNS = 7
PATIENCE_SECONDS = 120.0


@dataclass(frozen=True)
class Row:
    """A line of `kubectl get dtj --watch`."""

    phase: str
    ranks: str
    step: str


@dataclass(frozen=True)
class Trained:
    """The result of the run: its resource, and each watcher's output."""

    muster: Muster
    resource: dict[str, Any]
    rows: tuple[Row, ...]
    kubectl_wait: str
    waited: "subprocess.CompletedProcess[str]"
    followed: str
    terminal: str


@contextlib.contextmanager
def train(kubectl: Kubectl, namespace: str, surroundings: Surroundings) -> Iterator[Trained]:
    """Run the job to its end, then delete the job and its script."""
    inside, muster = f"--namespace={namespace}", Muster(kubectl.kubeconfig, namespace)
    code = put_code(kubectl, namespace, NAME)
    job = example_job(NAME, surroundings)
    job["spec"]["hyperparameters"]["epochs"] = EPOCHS
    try:
        with contextlib.ExitStack() as watchers:
            table = watchers.enter_context(kubectl.begin("get", "dtj", inside, "--watch"))
            watchers.callback(table.terminate)
            kubectl("apply", "-f", "-", inside, stdin=json.dumps(job))
            ranks = watchers.enter_context(muster.on_terminal("ranks", NAME))
            logs = watchers.enter_context(muster.begin("logs", NAME, "--follow", "--rank", "0"))
            waiting = watchers.enter_context(muster.begin("wait", NAME))
            said = kubectl("wait", "--for=condition=Complete", JOB, inside, f"--timeout={TRAINING_SECONDS}s")
            resource = json.loads(kubectl("get", JOB, inside, "--output=json"))
            yield Trained(muster, resource, _rows(table), said, _ended(waiting), logs.communicate()[0], _shown(ranks))
    finally:
        kubectl("delete", JOB, inside, "--ignore-not-found")
        kubectl("delete", "configmap", code, inside)


def _rows(table: "subprocess.Popen[str]") -> tuple[Row, ...]:
    """Return the lines so far."""
    table.terminate()
    assert table.stdout is not None
    rows = (line.split() for line in table.stdout.read().splitlines() if line.startswith(NAME))
    # NAME BACKEND PHASE NODES RANKS STEP AGE: no PHASE before the operator has read the job, no STEP before the first
    return tuple(Row(row[2], row[4], row[5] if len(row) == COLUMNS else "") for row in rows if len(row) >= COLUMNS - 1)


def _ended(process: "subprocess.Popen[str]") -> "subprocess.CompletedProcess[str]":
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def _shown(board: Terminal) -> str:
    assert board.end() == 0
    return board.text
