"""Random faults over jobs on the cluster: what is done to each job, and how the ranks' ends have to look."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from os import kill
from pathlib import Path

from cluster.reasons import machine
from cluster.reasons.launcher_parts import launcher_parts
from cluster.reasons.stage import A_SHARE, Stage, template
from cluster.reasons.test_lost_node import LOST, SHORT_CUT_SECONDS, placed
from cluster.reasons.test_maintained_machines import draining
from cluster.reasons.test_operator_away import operator_away
from cluster.reasons.timeline import ObservedChange
from cluster.torch_volume import TorchVolume
from support.chaos_job import HUNG, NO_RESTART, RANK_ENDS, TRAIN, read_attempt, read_pid

STEP_SECONDS = "0.1"
HANG_SECONDS = 8
MAX_FAULTS = 3
START_SECONDS = 240.0
END_SECONDS = 300.0
POLL_SECONDS = 0.2
TAKEN_AWAY = frozenset(("PodDeleted", "Evicted"))
FAILURES = (RANK_ENDS, HUNG)
"""The faults that count against `maxRestarts`."""

ENOUGH, FEW = 20, 1
"""`maxRestarts` of a job that survives its faults, and of one that the second failure ends."""

only_one = threading.Lock()
"""Held by a fault of what all jobs share: the operator, or a machine."""


@dataclass(frozen=True)
class Shape:
    """A job of two nodes."""

    launcher: str
    ranks_per_node: int
    max_restarts: int

    @property
    def world(self) -> int:
        """The number of its ranks."""
        return 2 * self.ranks_per_node


@dataclass(frozen=True)
class Harm:
    """A rank of an attempt that was killed or frozen."""

    at: float
    attempt: int
    rank: int


@dataclass
class Victim:
    """A running job, and what was done to it. `reasons` has, for each fault that must end an attempt, its reasons."""

    stage: Stage
    name: str
    folder: Path
    shape: Shape
    chance: random.Random
    done: list[str] = field(default_factory=list)
    reasons: list[frozenset[str]] = field(default_factory=list)
    harms: list[Harm] = field(default_factory=list)

    @property
    def mark(self) -> str:
        """A variable of all its processes."""
        return f"TEST_JOB={self.stage.namespace}/{self.name}"

    @property
    def attempt(self) -> int:
        """The latest attempt of which all ranks have begun; 0 before the first."""
        return read_attempt(self.folder, self.shape.world)

    def statuses(self) -> list[ObservedChange]:
        """Return all its statuses so far."""
        return self.stage.timeline.all(lambda seen: seen.kind == "Job" and seen.name == self.name)

    @property
    def has_ended(self) -> bool:
        """Whether the job is Complete or Failed."""
        seen = self.statuses()
        return bool(seen) and seen[-1].status.get("phase") in ("Succeeded", "Failed")

    def pods(self, *fields: str) -> list[str]:
        """Return the pods in which its ranks run."""
        wanted = ",".join(("status.phase=Running", *fields))
        selection = (f"--selector=muster.dev/job={self.name}", f"--field-selector={wanted}")
        return sorted(self.stage.jobs.run("get", "pods", *selection, "--output=name").split())

    def send(self, number: signal.Signals) -> None:
        """Send a signal to one of its ranks, if that still runs."""
        rank, attempt = self.chance.randrange(self.shape.world), self.attempt
        process = machine.find_rank(self.mark, rank, read_pid(self.folder, rank))
        if process is None:
            return
        with suppress(ProcessLookupError):
            kill(process, number)
            self.harms.append(Harm(self.stage.now(), attempt, rank))


Fault = Callable[[Victim], frozenset[str]]
"""Does something to a job. Returns the reasons of the restart that follows; none if nothing restarts."""


def kill_rank(victim: Victim) -> frozenset[str]:
    """As the kernel does when memory runs out."""
    victim.send(signal.SIGKILL)
    return RANK_ENDS


def fail_rank(victim: Victim) -> frozenset[str]:
    """With an exception in the script."""
    number = victim.chance.randrange(victim.shape.world)
    (victim.folder / f"fail-{number}-{victim.attempt}").touch()
    return RANK_ENDS


def freeze_rank(victim: Victim) -> frozenset[str]:
    """For ever."""
    victim.send(signal.SIGSTOP)
    return HUNG


def delete_pod(victim: Victim) -> frozenset[str]:
    """As a user does."""
    pods = victim.pods()
    if pods:
        victim.stage.jobs.run("delete", victim.chance.choice(pods), "--wait=false", "--ignore-not-found")
    return TAKEN_AWAY if pods else NO_RESTART


def kill_operator(victim: Victim) -> frozenset[str]:
    """The next one starts at once, and leads when the Lease has expired."""
    with only_one, operator_away(victim.stage):
        pass
    return NO_RESTART


def cut_network(victim: Victim) -> frozenset[str]:
    """For 20 s, between the second machine and all others. It restarts no job."""
    with only_one:
        with machine.lost(LOST):
            _pass_time(victim.stage, SHORT_CUT_SECONDS)
        # TCP sends again after as long as the cut has lasted. So several cuts at once would be a longer one.
        _pass_time(victim.stage, SHORT_CUT_SECONDS)
    return NO_RESTART


def _pass_time(stage: Stage, seconds: float) -> None:
    over_at = stage.now() + seconds
    stage.until(lambda: stage.now() >= over_at)


def drain_machine(victim: Victim) -> frozenset[str]:
    """As an administrator does, for this job's pods."""
    with only_one:
        pods = victim.pods(f"spec.nodeName={LOST}")
        with draining(victim.stage, victim.name):
            pass
    return TAKEN_AWAY if pods else NO_RESTART


FAULTS: Sequence[Fault] = (
    kill_rank,
    fail_rank,
    freeze_rank,
    delete_pod,
    kill_operator,
    cut_network,
    drain_machine,
)


def draw_shape(chance: random.Random) -> Shape:
    """Choose a job. torchrun imports torch, which takes most of a small job's time, so it is rarer."""
    launcher = chance.choice(("direct", "direct", "mpi", "torchrun"))
    return Shape(launcher, chance.randint(1, 2), chance.choice((ENOUGH, ENOUGH, FEW)))


def begin(stage: Stage, name: str, folder: Path, torch: TorchVolume, chance: random.Random) -> Victim:
    """Apply a job with a folder of its own, which both nodes share."""
    folder.mkdir()
    folder.chmod(0o777)
    victim = Victim(stage, name, folder, draw_shape(chance), chance)
    parts = launcher_parts(victim.shape.launcher, torch)
    variable, _, value = victim.mark.partition("=")
    own = {variable: value, "CHAOS_FOLDER": "/chaos", "CHAOS_STEP_SECONDS": STEP_SECONDS}
    volume = {"name": "chaos", "hostPath": {"path": str(folder), "type": "Directory"}}
    spec = placed(
        launcher={victim.shape.launcher: {}},
        procsPerNode=victim.shape.ranks_per_node,
        env=[*parts.env, *({"name": key, "value": text} for key, text in own.items())],
        resources=A_SHARE,
        failurePolicy={
            "maxRestarts": victim.shape.max_restarts,
            "maxDisruptions": MAX_FAULTS,
            "hangTimeoutSeconds": HANG_SECONDS,
        },
        template=template(
            {"volumeMounts": [{"name": "chaos", "mountPath": "/chaos"}, *parts.mounts]},
            volumes=[volume, *parts.volumes],
        ),
    )
    stage.apply(name, TRAIN, **spec)
    return victim


def disturb(victim: Victim) -> None:
    """Do a few things to the job, each once the attempt before has begun, and wait until it ends."""
    for _ in range(victim.chance.randint(1, MAX_FAULTS)):
        if not _until(partial(_is_past, victim, len(victim.reasons) + 1), START_SECONDS):
            break
        time.sleep(victim.chance.uniform(0.0, 2.0))
        if victim.has_ended:
            break
        fault = victim.chance.choice(FAULTS)
        victim.done.append(fault.__name__)
        reasons = fault(victim)
        if reasons:
            victim.reasons.append(reasons)
    _until(lambda: victim.has_ended, END_SECONDS)


def _is_past(victim: Victim, attempt: int) -> bool:
    return victim.attempt >= attempt or victim.has_ended


def _until(holds: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    return holds()
