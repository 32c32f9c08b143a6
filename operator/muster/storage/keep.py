"""What a node's ranks leave, brought to S3: snapshots while they run, results once they have ended. Blocks."""

from __future__ import annotations

from dataclasses import dataclass, field

from muster.api.s3_uri import parse
from muster.storage.bring import OUTPUT_FIELD, snapshots
from muster.storage.bucket import Bucket
from muster.storage.means import Means
from muster.storage.node_folders import NodeFolders
from muster.storage.snapshots import SETTLED_SECONDS, Snapshots
from muster.storage.storage_plan import StoragePlan
from muster.storage.upload import LocalFile, files_of, upload


@dataclass(frozen=True)
class Keeping:
    """One node's keeping. Methods raise `StorageTrouble`."""

    plan: StoragePlan
    folders: NodeFolders
    means: Means
    _sent: dict[str, LocalFile] = field(default_factory=dict)

    def refresh(self) -> None:
        """Fetch the snapshots that other nodes have written since: ranks that start anew have to see the same."""
        kept = self._snapshots()
        if kept is not None:
            kept.bring()

    def go_along(self) -> None:
        """Upload the snapshots that are whole, while ranks run."""
        kept = self._snapshots()
        if kept is not None:
            kept.keep(SETTLED_SECONDS)

    def finish(self) -> None:
        """Upload all that the ranks have left: none of them runs."""
        kept = self._snapshots()
        if kept is not None:
            self._say("snapshots", kept.keep(), str(self.plan.checkpoint))
        if self.plan.output is not None:
            self._upload_results(self.plan.output)

    def _snapshots(self) -> Snapshots | None:
        return snapshots(self.plan.checkpoint, self.folders, self.means) if self.plan.checkpoint is not None else None

    def _upload_results(self, output: str) -> None:
        place = parse(output).below(self.plan.job)
        bucket = Bucket(self.means.client(), place.bucket, OUTPUT_FIELD)
        for name, folder in (("model", self.folders.model), ("output", self.folders.output)):
            files = [file for file in files_of(folder) if self._sent.get(f"{name}/{file.path}") != file]
            upload(bucket, folder, files, place.below(name), self.means.pause)
            # on one machine the nodes share these folders, and each asks
            self._sent.update((f"{name}/{file.path}", file) for file in files)
            self._say(name, len(files), str(place.below(name)))

    def _say(self, what: str, count: int, place: str) -> None:
        if count:
            self.means.say(f"{what}: {count} files to {place}")
