"""Upload a node's checkpoints while its ranks run, and results after their end. Blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from muster.api.plurals import pluralize
from muster.api.s3_uri import parse
from muster.render.storage.errors import StorageError
from muster.render.storage.storage_plan import StoragePlan
from muster.storage.dependencies import StorageDependencies
from muster.storage.node_download import OUTPUT_FIELD, open_checkpoints
from muster.storage.node_folders import NodeFolders
from muster.storage.s3.bucket import Bucket
from muster.storage.s3.checkpoints import SETTLED_SECONDS, CheckpointSync
from muster.storage.s3.upload import LocalFile, list_files, upload_possible


@dataclass(frozen=True)
class NodeSync:
    """Downloads and uploads of one node. Methods raise `StorageError`."""

    plan: StoragePlan
    folders: NodeFolders
    dependencies: StorageDependencies
    _sent: dict[str, LocalFile] = field(default_factory=dict)

    def refresh(self) -> None:
        """Download other nodes' checkpoints, because all restarted ranks must read the same files."""
        checkpoints = self._open_checkpoints()
        if checkpoints is not None:
            checkpoints.download()

    def upload_checkpoints(self) -> None:
        """Upload complete checkpoint files while ranks run."""
        checkpoints = self._open_checkpoints()
        if checkpoints is not None:
            checkpoints.upload(SETTLED_SECONDS)

    def finish(self) -> None:
        """Upload all files after the end of the ranks; report failures after trying all uploads."""
        works: tuple[Callable[[], None], ...] = (
            self._upload_checkpoints,
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

    def _open_checkpoints(self) -> CheckpointSync | None:
        return (
            open_checkpoints(self.plan.checkpoint, self.folders, self.dependencies)
            if self.plan.checkpoint is not None
            else None
        )

    def _upload_checkpoints(self) -> None:
        checkpoints = self._open_checkpoints()
        if checkpoints is not None:
            self._report("checkpoint", checkpoints.upload(), str(self.plan.checkpoint))

    def _upload_results(self, name: str, folder: Path) -> None:
        if self.plan.output is None:
            return
        location = parse(self.plan.output).below(self.plan.job, name)
        bucket = Bucket(self.dependencies.client(), location.bucket, OUTPUT_FIELD)
        files = [file for file in list_files(folder) if self._sent.get(f"{name}/{file.path}") != file]
        upload_possible(bucket, folder, files, location, self.dependencies.sleep)
        # on one machine, all nodes share these folders, and each node uploads them
        self._sent.update((f"{name}/{file.path}", file) for file in files)
        self._report(name, len(files), str(location))

    def _report(self, what: str, count: int, place: str) -> None:
        if count:
            self.dependencies.report(f"{what}: {pluralize(count, 'file')} to {place}")
