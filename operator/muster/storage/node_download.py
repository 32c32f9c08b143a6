"""Download code, data and checkpoints for a node's ranks before they start. Blocks the thread."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from muster.api.plurals import pluralize
from muster.api.s3_uri import S3Uri, parse
from muster.render.storage.errors import FOLDER_UNUSABLE, StorageError
from muster.render.storage.objects import check_case, make_no_objects_error, select_shard, to_file_objects
from muster.render.storage.storage_plan import S3Channel, StoragePlan
from muster.storage.code import download_code
from muster.storage.dependencies import StorageDependencies
from muster.storage.node_folders import NodeFolders
from muster.storage.retry import retry
from muster.storage.s3.bucket import Bucket
from muster.storage.s3.checkpoints import CheckpointSync
from muster.storage.s3.download import DownloadFolders, Progress, download_objects

CHECKPOINT_FIELD = "spec.checkpoint.s3"
OUTPUT_FIELD = "spec.output.s3"


def download_node(
    plan: StoragePlan, node: int, folders: NodeFolders, config_map: Path | None, dependencies: StorageDependencies
) -> None:
    """Download the files of node `node`. `config_map` is the folder of the code's ConfigMap. Raises `StorageError`."""
    # Check write permissions now, because otherwise the job would fail after hours of training.
    for field, uri in ((CHECKPOINT_FIELD, plan.checkpoint), (OUTPUT_FIELD, plan.output)):
        if uri is not None:
            bucket = _open_bucket(dependencies, parse(uri), field)
            key = parse(uri).join_path(f".muster-{plan.job}").key
            retry(partial(bucket.check_write_permission, key), dependencies.sleep)
    if plan.code is not None:
        download_code(plan.code, folders.code, config_map, dependencies)
    for channel in plan.channels:
        _download_channel(plan, channel, node, folders, dependencies)
    if plan.checkpoint is not None:
        count = open_checkpoints(plan.checkpoint, folders, dependencies).download()
        dependencies.report(f"checkpoint: {pluralize(count, 'file')} from {plan.checkpoint}")


def open_checkpoints(uri: str, folders: NodeFolders, dependencies: StorageDependencies) -> CheckpointSync:
    """Return an object that syncs a node's checkpoints with `uri`."""
    location = parse(uri)
    download_folders = DownloadFolders(folders.checkpoints, folders.records / "checkpoints")
    return CheckpointSync(
        _open_bucket(dependencies, location, CHECKPOINT_FIELD),
        location,
        download_folders,
        dependencies.sleep,
        dependencies.clock,
    )


def _download_channel(
    plan: StoragePlan, channel: S3Channel, node: int, folders: NodeFolders, dependencies: StorageDependencies
) -> None:
    field, uri = f"spec.inputs[{channel.index}].s3.uri", parse(channel.uri)
    bucket = _open_bucket(dependencies, uri, field)
    channel_objects = to_file_objects(retry(lambda: list(bucket.list_objects(uri.key)), dependencies.sleep), uri, field)
    if not channel_objects:
        raise make_no_objects_error(uri, field)
    node_objects = select_shard(channel_objects, node, plan.nodes) if channel.is_sharded else channel_objects
    download_folders = DownloadFolders(folders.channels / channel.name, folders.records / "input" / channel.name)
    if _ignores_case(download_folders):
        check_case(node_objects, field)
    size = sum(entry.s3_object.size for entry in node_objects)
    dependencies.report(
        f"input {channel.name}: {len(node_objects)} of {pluralize(len(channel_objects), 'file')}, {_format_size(size)},"
        f" from {uri}"
    )
    download_objects(
        bucket,
        node_objects,
        download_folders,
        dependencies.sleep,
        _make_progress_reporter(channel.name, size, dependencies),
    )


def _make_progress_reporter(name: str, size: int, dependencies: StorageDependencies) -> Progress:
    progress = {"downloaded": 0, "reported": dependencies.clock()}

    def count_bytes(count: int) -> None:
        progress["downloaded"] += count
        now = dependencies.clock()
        if now - progress["reported"] >= _PROGRESS_SECONDS:
            progress["reported"] = now
            dependencies.report(f"input {name}: {_format_size(progress['downloaded'])} of {_format_size(size)}")

    return count_bytes


_PROGRESS_SECONDS = 10.0


def _format_size(size: float) -> str:
    return f"{size / 2**20:,.1f} MiB"


def _ignores_case(download_folders: DownloadFolders) -> bool:
    """Whether the folder's file system ignores the case of names."""
    try:
        download_folders.records.mkdir(parents=True, exist_ok=True)
        probe = download_folders.records / "case"
        probe.touch()
        return (download_folders.records / "CASE").exists()
    except OSError as error:
        raise StorageError(FOLDER_UNUSABLE, f"the data can't be written: {error}") from None


def _open_bucket(dependencies: StorageDependencies, uri: S3Uri, field: str) -> Bucket:
    return Bucket(dependencies.get_s3_client(), uri.bucket, field)
