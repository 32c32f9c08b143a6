"""The digits example as an elastic job that writes down what it trains, and the checks of what it has written."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from cluster.digits.example_job import EXAMPLES
from cluster.mpi.pod_installs import PodInstall
from cluster.reasons.stage import A_SHARE, Stage, template
from cluster.shared import Manifest
from cluster.torch_volume import TorchVolume, merge_paths

# The example itself, which writes down its images, its steps and its snapshots. It trains slowly until a file exists.
WATCH = """
import json, os, pathlib, time
import train

folder = pathlib.Path("/shared")
lines = (folder / f"{os.environ['MUSTER_ATTEMPT']}-{os.environ['RANK']}.jsonl").open("w", buffering=1)
choose_images, report, save = train.choose_images, train.report, train.save

def record(**line):
    lines.write(json.dumps(line) + "\\n")

def recording_choose_images(images, seed, first, rank, world):
    chosen = choose_images(images, seed, first, rank, world)
    record(epoch=seed, first=first, images=chosen)
    return chosen

def recording_report(step):
    record(step=step)
    report(step=step)
    if not (folder / "hurry").exists():
        time.sleep(0.3)

def recording_save(content, path):
    save(content, path)
    if "step" in content:
        record(saved=content["step"])

train.choose_images, train.report, train.save = recording_choose_images, recording_report, recording_save
train.main()
"""
EPOCHS = 10
BATCH = 16
IMAGES_AGAIN = 2
"""The most images of an epoch that ranks train twice, so that three ranks have the same number of them."""

WINDOW = 8
"""The steps over which a loss is averaged: that of one batch of one rank varies."""

MAX_RISE = 0.35
"""The most by which the loss of a window may exceed that of the window before it. It begins at 2.3."""


@dataclass(frozen=True)
class RankRecord:
    """What a rank has written in an attempt. `epochs` are the images it got from the epoch's image `first` on."""

    steps: list[int]
    epochs: list[tuple[int, int, list[int]]]
    saved: list[int]

    def trained(self, upto: int) -> Iterator[tuple[int, int]]:
        """Yield the epochs and images that it has trained until this step."""
        step = self.steps[0]
        for epoch, _, images in self.epochs:
            for begin in range(0, len(images), BATCH):
                step += 1
                if step > upto:
                    return
                yield from ((epoch, image) for image in images[begin : begin + BATCH])


@dataclass(frozen=True)
class WatchedTraining:
    """The job, and the folder that all its pods share."""

    stage: Stage
    name: str
    folder: Path

    def start(self, launcher: str, torch: TorchVolume, mpi: PodInstall, images: Path) -> None:
        """Apply the job of three nodes with one rank each."""
        self.folder.mkdir()
        self.folder.chmod(0o777)
        shutil.copy(EXAMPLES / "digits" / "train.py", self.folder)
        (self.folder / "watch.py").write_text(WATCH, encoding="ascii")
        folders = {"shared": self.folder, "images": images}
        volumes: list[Manifest] = [
            {"name": name, "hostPath": {"path": str(path), "type": "Directory"}} for name, path in folders.items()
        ]
        mounts: list[Manifest] = [{"name": name, "mountPath": f"/{name}"} for name in folders]
        options = {"train": "/images/train", "validation": "/images/validation", "checkpoint-dir": "/shared"}
        numbers = {"epochs": EPOCHS, "batch-size": BATCH, "log-every": 1, "require-accuracy": 0.9}
        self.stage.apply(
            self.name,
            command=["python3", "/shared/watch.py"],
            hyperparameters={**options, **numbers},
            launcher={launcher: {}},
            nodes=3,
            procsPerNode=1,
            env=[*merge_paths([*torch.env, *mpi.env]), {"name": "OMP_NUM_THREADS", "value": "1"}],
            resources=A_SHARE,
            elastic={"minNodes": 2, "maxNodes": 3, "resizeAfterSeconds": 2, "growAfterSeconds": 2},
            failurePolicy={"maxRestarts": 3, "maxDisruptions": 3},
            template=template(
                {"volumeMounts": [*mounts, *torch.mounts, *mpi.mounts]},
                volumes=[*volumes, *torch.volumes, *mpi.volumes],
            ),
        )

    def hurry(self) -> None:
        """Let the ranks train without pauses from now on."""
        (self.folder / "hurry").touch()

    def records(self, attempt: int) -> list[RankRecord]:
        """Return what the ranks have written in an attempt, rank 0 first."""
        return [_read(path) for path in sorted(self.folder.glob(f"{attempt}-*.jsonl"))]

    def has_trained(self, attempt: int, steps: int, *, saved: int = 0) -> bool:
        """Whether rank 0 has made a number of steps in the attempt, since its snapshot with this number."""
        first = next(iter(self.records(attempt)), None)
        if first is None or len(first.steps) == 0 or len(first.saved) < saved:
            return False
        return first.steps[-1] >= (first.saved[saved - 1] if saved else first.steps[0]) + steps

    def losses(self) -> dict[int, float]:
        """Return the loss of rank 0 by step, as its pod's log has it; that of the latest attempt for each step."""
        lines = re.findall(r"step=(\d+) loss=([\d.]+)", self.stage.jobs.log(f"{self.name}-0-0"))
        return {int(step): float(loss) for step, loss in lines}


def check_steps(attempts: list[list[RankRecord]]) -> None:
    """Each attempt begins on all ranks at the last snapshot of the attempt before, and makes one step after another."""
    for before, after in pairwise(attempts):
        assert {record.steps[0] for record in after} == {before[0].saved[-1]}
    for record in (record for attempt in attempts for record in attempt):
        assert record.steps == list(range(record.steps[0], record.steps[0] + len(record.steps)))


def check_images(attempts: list[list[RankRecord]]) -> None:
    """No image is trained twice in an epoch, except what was trained after a snapshot that the next attempt loads."""
    ends = [after[0].steps[0] for after in attempts[1:]] + [attempts[-1][0].steps[-1]]
    trained: dict[int, Counter[int]] = {}
    for attempt, end in zip(attempts, ends, strict=True):
        for record in attempt:
            for epoch, image in record.trained(end):
                trained.setdefault(epoch, Counter())[image] += 1
    assert sorted(trained) == list(range(EPOCHS))
    for counts in trained.values():
        assert sorted(counts) == list(range(len(counts)))
        assert len(counts) == len(trained[0])
        assert sum(counts.values()) - len(counts) <= IMAGES_AGAIN


def check_losses(losses: dict[int, float]) -> None:
    """The loss has no jump from one step to the next, and falls."""
    assert sorted(losses) == list(range(1, max(losses) + 1))
    means = [fmean(losses[step + each] for each in range(WINDOW)) for step in range(1, max(losses) - WINDOW + 2)]
    rises = [after - before for before, after in zip(means, means[WINDOW:], strict=False)]
    assert max(rises) < MAX_RISE, (max(rises), rises.index(max(rises)) + 1)
    assert means[-1] < means[0] / 4


def _read(path: Path) -> RankRecord:
    # The last line may be incomplete while the rank runs, or was killed.
    lines: list[Any] = [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return RankRecord(
        [line["step"] for line in lines if "step" in line],
        [(line["epoch"], line["first"], line["images"]) for line in lines if "epoch" in line],
        [line["saved"] for line in lines if "saved" in line],
    )
