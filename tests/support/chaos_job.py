"""The script of the jobs in the chaos tests, and what its files and the history of the job have to show at the end."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

STEPS = 120
SAVED_EVERY = 10

RANK_ENDS = frozenset(("RankFailed", "RankKilled"))
LAUNCHER_ENDS = RANK_ENDS | {"LauncherFailed"}
HUNG = frozenset(("Hung",))
NO_RESTART: frozenset[str] = frozenset()
"""The reason of a fault that restarts nothing."""

# It writes its processes, and its steps with their attempts, to CHAOS_FOLDER, or to the output folder of `muster run`.
TRAIN = f"""
import os, pathlib, time
import muster_worker
rank = next(os.environ[name] for name in ("OMPI_COMM_WORLD_RANK", "RANK") if name in os.environ)
attempt = os.environ["MUSTER_ATTEMPT"]
folder = pathlib.Path(os.environ.get("CHAOS_FOLDER") or os.environ["SM_OUTPUT_DIR"])
checkpoint = pathlib.Path(os.environ.get("CHAOS_FOLDER") or os.environ["MUSTER_CHECKPOINT_DIR"], "rank-" + rank)
step = int(checkpoint.read_text()) if checkpoint.exists() else 0

def write(path, text):
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").replace(path)

muster_worker.report(step=step)
write(folder / ("pid-" + rank), attempt + " " + str(os.getpid()))
while step < {STEPS}:
    time.sleep(float(os.environ["CHAOS_STEP_SECONDS"]))
    if (folder / ("fail-" + rank + "-" + attempt)).exists():
        raise ValueError("chaos")
    step += 1
    with open(folder / ("steps-" + rank), "a") as steps:
        steps.write(attempt + " " + str(step) + "\\n")
    muster_worker.report(step=step)
    is_stopping = muster_worker.stopping()
    if step % {SAVED_EVERY} == 0 or is_stopping:
        write(checkpoint, str(step))
    if is_stopping:
        break
"""


def read_attempt(folder: Path, world: int) -> int:
    """Return the latest attempt of which all ranks have begun; 0 before the first."""
    attempts = [int(path.read_text().split()[0]) for path in folder.glob("pid-?")]
    return min(attempts) if len(attempts) == world else 0


def read_pid(folder: Path, rank: int) -> int:
    """Return the process id of a rank, as the rank itself sees it."""
    return int((folder / f"pid-{rank}").read_text().split()[1])


def find_wrong_restarts(faults: Sequence[frozenset[str]], status: dict[str, Any]) -> list[str]:
    """Each restart has one fault as its cause, in their order. A fault may come too late to restart anything."""
    history = [record["reason"] for record in status.get("restarts", {}).get("history", [])]
    wanted = iter(faults)
    if all(any(reason in reasons for reasons in wanted) for reason in history):
        return []
    return [f"restarted for {history}"]


def find_wrong_states(status: dict[str, Any]) -> list[str]:
    """No rank runs after the end."""
    by_state = status.get("ranks", {}).get("byState", [])
    healthy = [each for each in by_state if each["state"] in ("Running", "Starting")]
    return [f"ranks {each['ranks']} are {each['state']} after the end" for each in healthy]


def find_wrong_steps(folder: Path, world: int, *, is_complete: bool) -> list[str]:
    """Each attempt goes on at the last checkpoint, at most `SAVED_EVERY` steps back; a complete rank has all steps."""
    problems = []
    for rank in range(world):
        problems += _find_wrong_steps(folder / f"steps-{rank}", is_complete=is_complete)
    return problems


def _find_wrong_steps(file: Path, *, is_complete: bool) -> list[str]:
    if not file.exists():
        return [f"{file.name} is missing"] if is_complete else []
    lines = [tuple(map(int, line.split())) for line in file.read_text().splitlines()]
    problems = []
    for (attempt, step), (next_attempt, next_step) in pairwise(lines):
        is_same = attempt == next_attempt
        if next_attempt < attempt or (is_same and next_step != step + 1):
            problems.append(f"{file.name}: attempt {attempt} step {step}, then attempt {next_attempt} step {next_step}")
        if not is_same and not step - SAVED_EVERY <= next_step - 1 <= step:
            problems.append(f"{file.name}: step {step} before a restart, {next_step} after it")
    if is_complete and lines[-1][1] != STEPS:
        problems.append(f"{file.name}: ended at step {lines[-1][1]}")
    return problems
