"""A job's code, data and snapshots on this machine, and where what its ranks leave is kept. Blocks."""
# ruff: noqa: PLC0415 - boto3 is loaded for who uses S3

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from muster.api.spec.job import Job
from muster.backends.local.layout import RunLayout
from muster.render.storage.git_token import VARIABLE
from muster.render.storage.storage_plan import StoragePlan, storage_plan
from muster.storage.code import download_code
from muster.storage.dependencies import StorageDependencies
from muster.storage.node_folders import NodeFolders, below

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def local_plan(job: Job, overrides: Collection[str]) -> StoragePlan | None:
    """What is brought here: all but the channels in `overrides`, which are folders of the user's. None: nothing."""
    plan = storage_plan(job)
    if plan is None:
        return None
    plan = replace(plan, channels=tuple(channel for channel in plan.channels if channel.name not in overrides))
    return plan if plan.uses_s3 or plan.code is not None else None


def without_fetched(job: Job, plan: StoragePlan | None) -> Job:
    """The job without the channels that `plan` downloads: the others have to be on this machine."""
    fetched = {channel.name for channel in plan.channels} if plan is not None else set()
    inputs = tuple(channel for channel in job.spec.inputs if channel.name not in fetched)
    return job.model_copy(update={"spec": job.spec.model_copy(update={"inputs": inputs})})


def code_folder(layout: RunLayout) -> Path:
    """Where the job's own code lies."""
    return layout.folder / "code"


def download_here(plan: StoragePlan, layout: RunLayout, say: Callable[[str], object]) -> None:
    """Download all of it, what all nodes share once. What an earlier run downloaded into this folder is kept.

    Raises `StorageError`; `ModuleNotFoundError` where boto3 is needed and missing.
    """
    dependencies, shared = _dependencies(say), _shared(layout)
    if not plan.uses_s3:
        if plan.code is not None:
            download_code(plan.code, shared.code, None, dependencies)
        return
    from muster.storage.node_download import download_node

    replicated = tuple(channel for channel in plan.channels if not channel.is_sharded)
    sharded = tuple(channel for channel in plan.channels if channel.is_sharded)
    download_node(replace(plan, channels=replicated), 0, shared, None, dependencies)
    for node in range(plan.nodes):
        download_node(
            StoragePlan(plan.job, plan.nodes, channels=sharded), node, below(_own(layout, node)), None, dependencies
        )


def fetched_folders(plan: StoragePlan | None, layout: RunLayout) -> dict[str, tuple[Path, ...]]:
    """Where each channel lies that `plan` downloads, for each node."""
    if plan is None:
        return {}
    return {
        channel.name: tuple(
            (below(_own(layout, node)) if channel.is_sharded else _shared(layout)).channels / channel.name
            for node in range(plan.nodes)
        )
        for channel in plan.channels
    }


@contextmanager
def sync(plan: StoragePlan | None, layout: RunLayout, say: Callable[[str], object]) -> Iterator[None]:
    """While it is open, agents may ask for what is to be kept in S3."""
    if plan is None or not plan.uploads:
        yield
        return
    from muster.storage.node_sync import NodeSync
    from muster.storage.sync_server import serve

    reader, writer = os.pipe()
    node_sync = NodeSync(plan, _shared(layout), _dependencies(say))
    thread = Thread(target=serve, args=(node_sync, layout.sync, reader), name="sync", daemon=True)
    thread.start()
    try:
        yield
    finally:
        os.close(writer)
        thread.join()
        os.close(reader)


def _shared(layout: RunLayout) -> NodeFolders:
    return NodeFolders(
        channels=layout.folder / "input",
        checkpoints=layout.checkpoints,
        model=layout.model,
        output=layout.output,
        code=code_folder(layout),
        notes=layout.folder / ".fetched",
    )


def _own(layout: RunLayout, node: int) -> Path:
    return layout.folder / "shards" / str(node)


def _dependencies(say: Callable[[str], object]) -> StorageDependencies:
    @cache
    def client() -> S3Client:
        from muster.storage.s3.bucket import s3_client

        return s3_client()

    return StorageDependencies(
        client=client, sleep=time.sleep, clock=time.time, say=say, git_token=os.environ.get(VARIABLE)
    )
