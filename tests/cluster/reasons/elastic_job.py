"""An elastic job whose ranks write with which step and world they begin, and a limit of the namespace's pods."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cluster.reasons.launcher_parts import launcher_parts
from cluster.reasons.stage import A_SHARE, Stage, template
from cluster.reasons.test_restarts import runs
from cluster.say import say
from cluster.shared import Manifest

# Rank 0 saves each step, once all ranks have read the last one. All write with which step and world they begin.
TRAINS = """
import os, pathlib, time
import muster_worker
rank, world, attempt = (os.environ[name] for name in ("RANK", "WORLD_SIZE", "MUSTER_ATTEMPT"))
folder = pathlib.Path("/checkpoint")
saved = folder / "saved"
first = int(saved.read_text()) if saved.exists() else 0
(folder / f"new-{rank}").write_text(str(first))
(folder / f"new-{rank}").rename(folder / f"first-{attempt}-{rank}-of-{world}")
while len(list(folder.glob(f"first-{attempt}-*"))) < int(world):
    time.sleep(0.05)
for step in range(first + 1, 100_000):
    time.sleep(0.05)
    muster_worker.report(step=step)
    if rank == "0":
        (folder / "new").write_text(str(step))
        (folder / "new").rename(saved)
"""


@dataclass(frozen=True)
class ElasticJob:
    """A job of three nodes, or of `nodes`, with one rank each. `members` has those of each attempt so far."""

    stage: Stage
    name: str
    folder: Path
    nodes: int = 3
    members: list[str] = field(default_factory=list)

    def start(self, launcher: str, **pod: object) -> None:
        """Apply the job, with these fields of its pods, and wait until it has a checkpoint."""
        self.folder.mkdir()
        self.folder.chmod(0o777)
        volumes: list[Manifest] = [{"name": "checkpoint", "hostPath": {"path": str(self.folder), "type": "Directory"}}]
        mounts: list[Manifest] = [{"name": "checkpoint", "mountPath": "/checkpoint"}]
        parts = launcher_parts(launcher, None)
        self.stage.apply(
            self.name,
            TRAINS,
            launcher={launcher: {}},
            nodes=self.nodes,
            procsPerNode=1,
            env=list(parts.env),
            resources=A_SHARE,
            elastic={"minNodes": 1, "maxNodes": 3, "resizeAfterSeconds": 5, "growAfterSeconds": 5},
            failurePolicy={"maxDisruptions": 3},
            template=template({"volumeMounts": [*mounts, *parts.mounts]}, volumes=[*volumes, *parts.volumes], **pod),
        )
        self.members.append(runs(self.stage, self.name, 1).status["members"])
        self.stage.until((self.folder / "saved").exists)

    def next_attempt(self) -> None:
        """Wait for the next attempt. All its ranks begin with the last checkpoint, in the new world."""
        attempt, before = len(self.members) + 1, int((self.folder / "saved").read_text())
        status: Any = runs(self.stage, self.name, attempt).status
        self.members.append(status["members"])
        say(f"{self.name}: {status['message']}")
        count = status["ranks"]["world"]
        # A rank runs before its script has written its file.
        self.stage.until(lambda: len(self._first_steps(attempt)) >= count)
        begun = self._first_steps(attempt)
        assert begun.keys() == {f"{rank}-of-{count}" for rank in range(count)}
        assert min(begun.values()) == max(begun.values()) >= before

    def _first_steps(self, attempt: int) -> dict[str, int]:
        files = self.folder.glob(f"first-{attempt}-*")
        return {path.name.removeprefix(f"first-{attempt}-"): int(path.read_text()) for path in files}


def limit_pods(stage: Stage, count: int) -> None:
    """Allow this number of pods of jobs, beside those that other tests have created themselves."""
    others = stage.jobs.run("get", "pods", "--selector=!muster.dev/job", "--output=name").split()
    quota: Manifest = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "pods"},
        "spec": {"hard": {"pods": count + len(others)}},
    }
    stage.jobs.run("apply", "--filename=-", stdin=json.dumps(quota))
