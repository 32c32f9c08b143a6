"""Jobs that save checkpoints, and the checks that all jobs have in common which continue after a failure."""

from dataclasses import dataclass
from pathlib import Path

from cluster.reasons import machine
from cluster.reasons.launcher_parts import launcher_parts
from cluster.reasons.stage import A_SHARE, Stage, template
from cluster.reasons.test_restarts import history
from cluster.shared import Manifest
from cluster.torch_volume import TorchVolume

RANKS = 4
MEMORY = "1Gi"
"""The limit of a pod. torchrun's agent imports torch, too."""

# Rank 0 saves each step. Attempt 1 never ends by itself, and each later attempt trains five more steps.
TRAIN = """
import os, pathlib, time
import muster_worker
rank = next(os.environ[name] for name in ("OMPI_COMM_WORLD_RANK", "RANK") if name in os.environ)
attempt, folder = int(os.environ["MUSTER_ATTEMPT"]), pathlib.Path("/checkpoint")
checkpoints = [folder / f"saved-{number}" for number in range(1, attempt)]
first = max((int(path.read_text()) for path in checkpoints if path.exists()), default=0)
(folder / f"first-{rank}-{attempt}").write_text(str(first))
held = []
for step in range(first + 1, first + (100_000 if attempt == 1 else 6)):
    time.sleep(0.05)
    muster_worker.report(step=step)
    if rank == "0":
        (folder / "new").write_text(str(step))
        (folder / "new").rename(folder / f"saved-{attempt}")
    if (rank, attempt) == ("2", 1) and (folder / "grow").exists():
        held += [bytearray(2**24) for _ in range(8)]
"""


@dataclass(frozen=True)
class SavingJob:
    """A job of two nodes with two ranks each, and the folder of its checkpoints, which both nodes share."""

    name: str
    folder: Path
    mark: str

    @property
    def saved_step(self) -> int:
        """The step of the checkpoint of attempt 1."""
        return int((self.folder / "saved-1").read_text())

    @property
    def first_steps(self) -> list[int]:
        """The steps with which the ranks of attempt 2 began."""
        return [int(path.read_text()) for path in self.folder.glob("first-*-2")]


def start(
    stage: Stage, name: str, launcher: str, folder: Path, torch: TorchVolume | None = None, **spec: object
) -> SavingJob:
    """Apply a job. It has a checkpoint soon after its ranks have started: `has_saved`."""
    folder.mkdir()
    folder.chmod(0o777)
    job = SavingJob(name, folder, f"TEST_JOB={stage.namespace}/{name}")
    volumes: list[Manifest] = [{"name": "checkpoint", "hostPath": {"path": str(folder), "type": "Directory"}}]
    mounts: list[Manifest] = [{"name": "checkpoint", "mountPath": "/checkpoint"}]
    variable, _, value = job.mark.partition("=")
    env: list[Manifest] = [{"name": variable, "value": value}]
    parts = launcher_parts(launcher, torch)
    volumes += parts.volumes
    mounts += parts.mounts
    env += parts.env
    stage.apply(
        name,
        TRAIN,
        **{
            "nodes": 2,
            "procsPerNode": 2,
            "launcher": {launcher: {}},
            "env": env,
            "resources": {**A_SHARE, "limits": {"memory": MEMORY}},
            "failurePolicy": {"maxRestarts": 2, "maxDisruptions": 2},
            "template": template({"volumeMounts": mounts}, volumes=volumes),
            **spec,
        },
    )
    return job


def has_saved(stage: Stage, job: SavingJob) -> bool:
    """Whether all ranks run, and rank 0 has saved a step."""
    ranks = stage.jobs.status(job.name).get("ranks", {})
    return ranks.get("running") == RANKS and (job.folder / "saved-1").exists()


def check_continued(stage: Stage, job: SavingJob, counts_as: str, replaced_pods: int) -> str:
    """The job becomes Complete after one restart from the last checkpoint. Return the reason in its history."""
    stage.completes(job.name)
    status = stage.jobs.status(job.name)
    (record,) = history(status)
    assert (record[0], *record[2:]) == (1, counts_as, replaced_pods), status["restarts"]
    assert (status["phase"], status["attempt"], status["restarts"]["total"]) == ("Succeeded", 2, 1)
    assert job.saved_step > 0
    assert job.first_steps == [job.saved_step] * RANKS
    # This machine has both nodes.
    stage.until(lambda: not machine.with_variable(job.mark))
    return record[1]
