"""Run `muster storage`: sync files with S3, in containers of the ranks' pods."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from muster.render.storage import storage_plan
from muster.render.storage.errors import StorageError
from muster.render.storage.git_token import GIT_TOKEN_VARIABLE
from muster.render.storage.storage_plan import StoragePlan
from muster.storage.dependencies import StorageDependencies
from muster.storage.node_download import download_node
from muster.storage.node_folders import make_node_folders
from muster.storage.node_sync import NodeSync
from muster.storage.s3.bucket import make_s3_client
from muster.storage.sync_server import serve_sync

FAILED = 1


@dataclass(frozen=True)
class StorageOptions:
    """The options of `muster storage`: the file of the job's storage plan, and the node's folder."""

    plan: Path
    root: Path


def download_files(options: StorageOptions, node: int, config_map: Path | None) -> int:
    """Download the files of node `node`; return the exit code.

    After a failure, the last line of standard error is the reason and the message.
    """
    # The ranks may run as another user, so they need access to the files.
    os.umask(0)
    # The root file system is read-only.
    tempfile.tempdir = str(options.root)
    try:
        download_node(_read_plan(options), node, make_node_folders(options.root), config_map, _make_dependencies())
    except StorageError as problem:
        sys.stderr.write(f"{problem.reason}: {problem.message}\n")
        return FAILED
    return 0


def upload_files(options: StorageOptions, socket: Path) -> int:
    """Upload the ranks' files until SIGTERM; return the exit code."""
    os.umask(0)
    tempfile.tempdir = str(options.root)
    socket.parent.mkdir(parents=True, exist_ok=True)
    reader, writer = os.pipe()
    for descriptor in (reader, writer):
        os.set_blocking(descriptor, False)
    signal.set_wakeup_fd(writer)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # the wake-up descriptor reports the signal
    serve_sync(NodeSync(_read_plan(options), make_node_folders(options.root), _make_dependencies()), socket, reader)
    return 0


def _read_plan(options: StorageOptions) -> StoragePlan:
    return storage_plan.decode_plan(options.plan.read_bytes())


def _make_dependencies() -> StorageDependencies:
    return StorageDependencies(
        get_s3_client=cache(make_s3_client),
        sleep=time.sleep,
        clock=time.time,
        report=_print_line,
        git_token=os.environ.pop(GIT_TOKEN_VARIABLE, None),
    )


def _print_line(line: str) -> None:
    sys.stderr.write(f"[muster] {line}\n")
    sys.stderr.flush()
