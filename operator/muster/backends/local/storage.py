"""Download a local run's code, data and checkpoints, and upload its results. Blocking."""
# ruff: noqa: PLC0415 - import boto3 only for jobs that use S3

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
from muster.render.storage.git_token import GIT_TOKEN_VARIABLE
from muster.render.storage.storage_plan import StoragePlan, make_storage_plan
from muster.storage.code import download_code
from muster.storage.dependencies import StorageDependencies
from muster.storage.node_folders import NodeFolders, make_node_folders

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def make_local_plan(job: Job, overrides: Collection[str]) -> StoragePlan | None:
    """Return the plan of downloads and uploads, without the channels in `overrides`; None if there is nothing to do."""
    plan = make_storage_plan(job)
    if plan is None:
        return None
    plan = replace(plan, channels=tuple(channel for channel in plan.channels if channel.name not in overrides))
    return plan if plan.uses_s3 or plan.code is not None else None


def drop_downloaded_channels(job: Job, plan: StoragePlan | None) -> Job:
    """Return the job without the channels that `plan` downloads: the other channels must be on this machine."""
    fetched = {channel.name for channel in plan.channels} if plan is not None else set()
    inputs = tuple(channel for channel in job.spec.inputs if channel.name not in fetched)
    return job.model_copy(update={"spec": job.spec.model_copy(update={"inputs": inputs})})


def get_code_folder(layout: RunLayout) -> Path:
    """Return the folder of the job's code."""
    return layout.folder / "code"


def download_inputs(plan: StoragePlan, layout: RunLayout, report: Callable[[str], object]) -> None:
    """Download all files, and those that all nodes share only once. Keeps the downloads of an earlier run.

    Raises `StorageError`; `ModuleNotFoundError` if boto3 is needed and missing.
    """
    dependencies, shared = _make_dependencies(report), _make_shared_folders(layout)
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
            StoragePlan(plan.job, plan.nodes, channels=sharded),
            node,
            make_node_folders(_get_sharded_folder(layout, node)),
            None,
            dependencies,
        )


def list_downloaded_folders(plan: StoragePlan | None, layout: RunLayout) -> dict[str, tuple[Path, ...]]:
    """Return the folders of each channel that `plan` downloads, one for each node."""
    if plan is None:
        return {}
    return {
        channel.name: tuple(
            (
                make_node_folders(_get_sharded_folder(layout, node))
                if channel.is_sharded
                else _make_shared_folders(layout)
            ).channels
            / channel.name
            for node in range(plan.nodes)
        )
        for channel in plan.channels
    }


@contextmanager
def sync(plan: StoragePlan | None, layout: RunLayout, report: Callable[[str], object]) -> Iterator[None]:
    """Handle the agents' requests for uploads to S3 while the `with` block runs."""
    if plan is None or not plan.has_uploads:
        yield
        return
    from muster.storage.node_sync import NodeSync
    from muster.storage.sync_server import serve_sync

    reader, writer = os.pipe()
    node_sync = NodeSync(plan, _make_shared_folders(layout), _make_dependencies(report))
    thread = Thread(target=serve_sync, args=(node_sync, layout.sync, reader), name="sync", daemon=True)
    thread.start()
    try:
        yield
    finally:
        os.close(writer)
        thread.join()
        os.close(reader)


def _make_shared_folders(layout: RunLayout) -> NodeFolders:
    return NodeFolders(
        channels=layout.folder / "input",
        checkpoints=layout.checkpoints,
        model=layout.model,
        output=layout.output,
        code=get_code_folder(layout),
        records=layout.folder / ".fetched",
    )


def _get_sharded_folder(layout: RunLayout, node: int) -> Path:
    return layout.folder / "shards" / str(node)


def _make_dependencies(report: Callable[[str], object]) -> StorageDependencies:
    @cache
    def client() -> S3Client:
        from muster.storage.s3.bucket import make_s3_client

        return make_s3_client()

    return StorageDependencies(
        get_s3_client=client,
        sleep=time.sleep,
        clock=time.time,
        report=report,
        git_token=os.environ.get(GIT_TOKEN_VARIABLE),
    )
