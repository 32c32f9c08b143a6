"""Random faults over jobs of `muster run`: what is done to each, how it must end, and what is wrong if it doesn't."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from integration.run.muster_run import MARK, Started, start, write_job
from integration.run.test_run_mpi import environment
from support.chaos_job import (
    HUNG,
    LAUNCHER_ENDS,
    NO_RESTART,
    RANK_ENDS,
    TRAIN,
    find_wrong_restarts,
    find_wrong_states,
    find_wrong_steps,
    read_attempt,
    read_pid,
)
from support.marked_processes import find_marked_processes
from support.sudden_kill import kill_at_once

HANG_SECONDS = 8
MAX_FAULTS = 3
"""Each restart in a row waits longer: 0, 2 and 4 s."""

START_SECONDS = 120.0
END_SECONDS = 240.0

FOLDERS_OF_KILLED_PROGRAMS = ("torchelastic_", "torchinductor_", "ompi.", "prted.")
"""torchrun, torch's compiler and Open MPI leave their temporary folders behind when their processes are killed."""

STEP_SECONDS = 0.05

MPI = "openmpi5"


@dataclass(frozen=True)
class Shape:
    """A job's size and launcher."""

    nodes: int
    ranks_per_node: int
    launcher: str
    warm_start: str

    @property
    def world(self) -> int:
        """The number of its ranks."""
        return self.nodes * self.ranks_per_node


@dataclass
class Victim:
    """A running job, and what was done to it. `reasons` has, for each fault that must end an attempt, its reasons."""

    shape: Shape
    started: Started
    chance: random.Random
    done: list[str] = field(default_factory=list)
    reasons: list[frozenset[str]] = field(default_factory=list)
    is_cancelled: bool = False

    @property
    def output(self) -> Path:
        """The folder to which its ranks write."""
        return self.started.folder / "output"

    @property
    def attempt(self) -> int:
        """The latest attempt of which all ranks have begun; 0 before the first."""
        return read_attempt(self.output, self.shape.world)

    @property
    def runs(self) -> bool:
        """Whether muster has not ended."""
        return self.started.process.poll() is None

    def rank(self) -> int:
        """Return the process of one of its ranks."""
        return read_pid(self.output, self.chance.randrange(self.shape.world))

    def send(self, number: signal.Signals, *pids: int) -> None:
        """Send a signal to processes of the job that still run."""
        mine = find_marked_processes(f"{MARK}={self.started.mark}")
        for pid in pids:
            if pid in mine:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)

    def find(self, *words: str) -> list[int]:
        """Return the processes of the job with one of these words in the command line."""
        processes = find_marked_processes(f"{MARK}={self.started.mark}").items()
        return sorted(pid for pid, line in processes if any(word in line for word in words))


def kill_rank(victim: Victim) -> None:
    """As the kernel does when memory runs out."""
    victim.send(signal.SIGKILL, victim.rank())


def fail_rank(victim: Victim) -> None:
    """With an exception in the script."""
    number = victim.chance.randrange(victim.shape.world)
    (victim.output / f"fail-{number}-{victim.attempt}").touch()


def freeze_rank(victim: Victim) -> None:
    """For ever."""
    victim.send(signal.SIGSTOP, victim.rank())


def freeze_rank_for_a_moment(victim: Victim) -> None:
    """Shorter than the time after which a rank hangs."""
    pid = victim.rank()
    victim.send(signal.SIGSTOP, pid)
    time.sleep(1.0)
    victim.send(signal.SIGCONT, pid)


def kill_launcher(victim: Victim) -> None:
    """A node's torchrun, mpirun, or with the launcher `direct` a rank."""
    launchers = victim.find("torchrun", "torch.distributed.run", "mpirun")
    victim.send(signal.SIGKILL, *launchers[:1]) if launchers else kill_rank(victim)


def kill_agent(victim: Victim) -> None:
    """Without a last word."""
    kill_at_once(victim.started.agents())


def freeze_agent_for_a_moment(victim: Victim) -> None:
    """Its ranks go on."""
    agents = victim.started.agents()
    victim.send(signal.SIGSTOP, *agents)
    time.sleep(2.0)
    victim.send(signal.SIGCONT, *agents)


def stop_node(victim: Victim) -> None:
    """As a machine that shuts down."""
    victim.send(signal.SIGTERM, min(victim.started.agents(), default=0))


def cancel(victim: Victim) -> None:
    """With Ctrl-C."""
    victim.is_cancelled = True
    victim.started.process.send_signal(signal.SIGINT)


AGENT_ENDS = frozenset(("AgentLost", "NodeStopped"))
FAULTS: Sequence[tuple[Callable[[Victim], None], frozenset[str]]] = (
    (kill_rank, RANK_ENDS),
    (fail_rank, RANK_ENDS),
    (freeze_rank, HUNG),
    (kill_launcher, LAUNCHER_ENDS),
    (kill_agent, AGENT_ENDS),
    (stop_node, AGENT_ENDS),
    (freeze_rank_for_a_moment, NO_RESTART),
    (freeze_agent_for_a_moment, NO_RESTART),
    (cancel, NO_RESTART),
)
"""Each fault with the reasons of the restart that follows; none for a fault that restarts nothing."""


def draw_shape(chance: random.Random) -> Shape:
    """Choose a job. torchrun imports torch, which takes most of a small job's time, so it is rarer."""
    launcher = chance.choice(("direct", "direct", "mpi", "torchrun"))
    return Shape(chance.randint(1, 2), chance.randint(1, 2), launcher, chance.choice(("Auto", "Off")))


def begin(folder: Path, name: str, chance: random.Random) -> Victim:
    """Start a job in a folder of its own, also for its temporary files."""
    shape = draw_shape(chance)
    folder.mkdir()
    temporary = folder / "tmp"
    temporary.mkdir()
    script = folder / "train.py"
    script.write_text(TRAIN)
    job = write_job(
        folder,
        ["python", str(script)],
        name,
        nodes=shape.nodes,
        procsPerNode=shape.ranks_per_node,
        launcher={shape.launcher: {}},
        warmStart=shape.warm_start,
        failurePolicy={"maxRestarts": 100, "maxDisruptions": 100, "hangTimeoutSeconds": HANG_SECONDS},
    )
    variables = environment(MPI) if shape.launcher == "mpi" else dict(os.environ)
    own = {
        **variables,
        "PATH": f"{Path(sys.executable).parent}:{variables['PATH']}",
        "TMPDIR": str(temporary),
        "CHAOS_STEP_SECONDS": str(STEP_SECONDS),
    }
    return Victim(shape, start(folder, job, "-o", "json", env=own), chance)


def disturb(victim: Victim) -> None:
    """Do a few things to the job, each once the attempt before has begun, and wait until it ends."""
    for _ in range(victim.chance.randint(1, MAX_FAULTS)):
        attempt = len(victim.reasons) + 1
        if not _until(partial(_is_past, victim, attempt), START_SECONDS):
            break
        time.sleep(victim.chance.uniform(0.0, 2.0))
        if not victim.runs or victim.is_cancelled:
            break
        fault, reasons = victim.chance.choice(FAULTS)
        victim.done.append(fault.__name__)
        fault(victim)
        if reasons:
            victim.reasons.append(reasons)
    victim.started.wait(END_SECONDS)


def find_problems(victim: Victim) -> list[str]:
    """Return what is wrong with a job that has ended."""
    problems = [f"left over: {line}" for line in victim.started.left()]
    temporary = (victim.started.folder.parent / "tmp").iterdir()
    problems += [f"left over: {path}" for path in temporary if not path.name.startswith(FOLDERS_OF_KILLED_PROGRAMS)]
    text = victim.started.stdout
    if not text:
        return [*problems, f"no result: {victim.started.stderr[-2000:]}"]
    status = json.loads(text)["status"]
    is_complete = status["phase"] == "Succeeded"
    if not is_complete and not victim.is_cancelled:
        problems.append(f"{status['phase']}: {status['message']}")
    if is_complete != (victim.started.wait() == 0):
        problems.append(f"{status['phase']} with exit code {victim.started.wait()}")
    problems += find_wrong_states(status)
    problems += find_wrong_restarts(victim.reasons, status)
    return problems + find_wrong_steps(victim.output, victim.shape.world, is_complete=is_complete)


def _is_past(victim: Victim, attempt: int) -> bool:
    return victim.attempt >= attempt or not victim.runs


def _until(holds: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.05)
    return holds()
