"""Upload what a node's ranks write: checkpoints while they run, results once they have ended. Blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from muster.api.amounts import amount
from muster.api.s3_uri import parse
from muster.render.storage.errors import StorageError
from muster.render.storage.storage_plan import StoragePlan
from muster.storage.dependencies import StorageDependencies
from muster.storage.node_download import OUTPUT_FIELD, snapshots
from muster.storage.node_folders import NodeFolders
from muster.storage.s3.bucket import Bucket
from muster.storage.s3.snapshots import SETTLED_SECONDS, Snapshots
from muster.storage.s3.upload import LocalFile, files_of, upload_what_goes


@dataclass(frozen=True)
class NodeSync:
    """Downloads and uploads of one node. Methods raise `StorageError`."""

    plan: StoragePlan
    folders: NodeFolders
    dependencies: StorageDependencies
    _sent: dict[str, LocalFile] = field(default_factory=dict)

    def refresh(self) -> None:
        """Download checkpoints that other nodes have written: restarted ranks must see the same files."""
        kept = self._snapshots()
        if kept is not None:
            kept.download()

    def go_along(self) -> None:
        """Upload complete checkpoint files while ranks run."""
        kept = self._snapshots()
        if kept is not None:
            kept.upload(SETTLED_SECONDS)

    def finish(self) -> None:
        """Upload all files of the ranks, none of which runs any more. Report failures after trying all of them."""
        works: tuple[Callable[[], None], ...] = (
            self._upload_snapshots,
            partial(self._upload_results, "model", self.folders.model),
            partial(self._upload_results, "output", self.folders.output),
        )
        problems: list[StorageError] = []
        for work in works:
            try:
                work()
            except StorageError as problem:
                problems.append(problem)
                # the retries have already waited for S3 long enough
                if problem.may_pass:
                    break
        if problems:
            raise problems[0]

    def _snapshots(self) -> Snapshots | None:
        return (
            snapshots(self.plan.checkpoint, self.folders, self.dependencies)
            if self.plan.checkpoint is not None
            else None
        )

    def _upload_snapshots(self) -> None:
        kept = self._snapshots()
        if kept is not None:
            self._say("checkpoint", kept.upload(), str(self.plan.checkpoint))

    def _upload_results(self, name: str, folder: Path) -> None:
        if self.plan.output is None:
            return
        place = parse(self.plan.output).below(self.plan.job, name)
        bucket = Bucket(self.dependencies.client(), place.bucket, OUTPUT_FIELD)
        files = [file for file in files_of(folder) if self._sent.get(f"{name}/{file.path}") != file]
        upload_what_goes(bucket, folder, files, place, self.dependencies.sleep)
        # on one machine the nodes share these folders, and each calls this
        self._sent.update((f"{name}/{file.path}", file) for file in files)
        self._say(name, len(files), str(place))

    def _say(self, what: str, count: int, place: str) -> None:
        if count:
            self.dependencies.say(f"{what}: {amount(count, 'file')} to {place}")
