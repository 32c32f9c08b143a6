"""Download what a node's ranks need at the start: code, data, checkpoints. Blocks."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from muster.api.amounts import amount
from muster.api.s3_uri import S3Uri, parse
from muster.render.storage.errors import FOLDER_UNUSABLE, StorageError
from muster.render.storage.objects import check_case, nothing_found, placed, share
from muster.render.storage.storage_plan import S3Channel, StoragePlan
from muster.storage.code import download_code
from muster.storage.dependencies import StorageDependencies
from muster.storage.node_folders import NodeFolders
from muster.storage.retry import retry
from muster.storage.s3.bucket import Bucket
from muster.storage.s3.download import Into, Progress, fetch
from muster.storage.s3.snapshots import Snapshots

CHECKPOINT_FIELD = "spec.checkpoint.s3"
OUTPUT_FIELD = "spec.output.s3"


def download_node(
    plan: StoragePlan, node: int, folders: NodeFolders, config_map: Path | None, dependencies: StorageDependencies
) -> None:
    """Download what node `node` needs. `config_map` is the folder of the code's ConfigMap. Raises `StorageError`."""
    # check write permissions now: otherwise the job would fail after hours of training
    for field, uri in ((CHECKPOINT_FIELD, plan.checkpoint), (OUTPUT_FIELD, plan.output)):
        if uri is not None:
            bucket = _bucket(dependencies, parse(uri), field)
            key = parse(uri).below(f".muster-{plan.job}").key
            retry(partial(bucket.try_write, key), dependencies.sleep)
    if plan.code is not None:
        download_code(plan.code, folders.code, config_map, dependencies)
    for channel in plan.channels:
        _channel(plan, channel, node, folders, dependencies)
    if plan.checkpoint is not None:
        count = snapshots(plan.checkpoint, folders, dependencies).download()
        dependencies.say(f"checkpoint: {amount(count, 'file')} from {plan.checkpoint}")


def snapshots(uri: str, folders: NodeFolders, dependencies: StorageDependencies) -> Snapshots:
    """The checkpoints of a node, which are synced with `uri`."""
    place = parse(uri)
    into = Into(folders.checkpoints, folders.notes / "checkpoints")
    return Snapshots(
        _bucket(dependencies, place, CHECKPOINT_FIELD), place, into, dependencies.sleep, dependencies.clock
    )


def _channel(
    plan: StoragePlan, channel: S3Channel, node: int, folders: NodeFolders, dependencies: StorageDependencies
) -> None:
    field, uri = f"spec.inputs[{channel.index}].s3.uri", parse(channel.uri)
    bucket = _bucket(dependencies, uri, field)
    result = placed(retry(lambda: list(bucket.objects(uri.key)), dependencies.sleep), uri, field)
    if not result:
        raise nothing_found(uri, field)
    mine = share(result, node, plan.nodes) if channel.is_sharded else result
    into = Into(folders.channels / channel.name, folders.notes / "input" / channel.name)
    if _folds_case(into):
        check_case(mine, field)
    size = sum(one.stored.size for one in mine)
    dependencies.say(f"input {channel.name}: {len(mine)} of {amount(len(result), 'file')}, {_shown(size)}, from {uri}")
    fetch(bucket, mine, into, dependencies.sleep, _teller(channel.name, size, dependencies))


def _teller(name: str, size: int, dependencies: StorageDependencies) -> Progress:
    progress = {"there": 0, "reported": dependencies.clock()}

    def count_bytes(count: int) -> None:
        progress["there"] += count
        now = dependencies.clock()
        if now - progress["reported"] >= _PROGRESS_SECONDS:
            progress["reported"] = now
            dependencies.say(f"input {name}: {_shown(progress['there'])} of {_shown(size)}")

    return count_bytes


_PROGRESS_SECONDS = 10.0


def _shown(size: float) -> str:
    return f"{size / 2**20:,.1f} MiB"


def _folds_case(into: Into) -> bool:
    """Whether the folder's file system ignores case."""
    try:
        into.notes.mkdir(parents=True, exist_ok=True)
        probe = into.notes / "case"
        probe.touch()
        return (into.notes / "CASE").exists()
    except OSError as error:
        raise StorageError(FOLDER_UNUSABLE, f"the data can't be written: {error}") from None


def _bucket(dependencies: StorageDependencies, uri: S3Uri, field: str) -> Bucket:
    return Bucket(dependencies.client(), uri.bucket, field)
