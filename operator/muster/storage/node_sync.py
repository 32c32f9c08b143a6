"""Upload a node's checkpoints while its ranks run, and its results after their end. Blocks the thread."""

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
from muster.storage.s3.upload import LocalFile, list_files, upload_despite_errors


@dataclass(frozen=True)
class NodeSync:
    """The downloads and uploads of one node. The methods raise `StorageError`."""

    plan: StoragePlan
    folders: NodeFolders
    dependencies: StorageDependencies
    _uploaded_files: dict[str, LocalFile] = field(default_factory=dict)

    def download_checkpoints(self) -> None:
        """Download the checkpoints of other nodes, so that all restarted ranks read the same files."""
        checkpoints = self._open_checkpoints()
        if checkpoints is not None:
            checkpoints.download()

    def upload_checkpoints(self) -> None:
        """Upload checkpoint files that are probably complete, while the ranks run."""
        checkpoints = self._open_checkpoints()
        if checkpoints is not None:
            checkpoints.upload(SETTLED_SECONDS)

    def upload_all(self) -> None:
        """Upload all files after the end of the ranks. Raise the first error after all uploads."""
        uploads: tuple[Callable[[], None], ...] = (
            self._upload_checkpoints,
            partial(self._upload_results, "model", self.folders.model),
            partial(self._upload_results, "output", self.folders.output),
        )
        problems: list[StorageError] = []
        for run_upload in uploads:
            try:
                run_upload()
            except StorageError as problem:
                problems.append(problem)
                # S3 is unavailable, and the retries have waited long enough.
                if problem.is_retryable:
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
        location = parse(self.plan.output).join_path(self.plan.job, name)
        bucket = Bucket(self.dependencies.get_s3_client(), location.bucket, OUTPUT_FIELD)
        files = [file for file in list_files(folder) if self._uploaded_files.get(f"{name}/{file.path}") != file]
        upload_despite_errors(bucket, folder, files, location, self.dependencies.sleep)
        # With `muster run`, all nodes share these folders, and each node uploads them.
        self._uploaded_files.update((f"{name}/{file.path}", file) for file in files)
        self._report(name, len(files), str(location))

    def _report(self, label: str, count: int, uri: str) -> None:
        if count:
            self.dependencies.report(f"{label}: {pluralize(count, 'file')} to {uri}")
