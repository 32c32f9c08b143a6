"""Sync a node's files with S3 when its agent requests it over a Unix socket. Blocks the thread.

One thread runs one sync at a time, because concurrent uploads of a checkpoint would be useless.
"""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from muster.render.storage.errors import StorageError
from muster.storage.node_sync import NodeSync

UPLOAD_INTERVAL_SECONDS = 30.0
"""The interval of uploads. A lost node loses the checkpoints of this time at most."""

_REQUEST_SECONDS = 5.0
_MAX_REQUEST_BYTES = 1024


def serve_sync(node_sync: NodeSync, path: Path, stop: int) -> None:
    """Answer requests at the socket `path` until the descriptor `stop` is readable, then upload all remaining files."""
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        # The agent in the same pod may run as another user.
        path.chmod(0o777)
        listener.listen(8)
        sync_server = _SyncServer(node_sync)
        while True:
            ready, _, _ = select.select([listener.fileno(), stop], [], [], UPLOAD_INTERVAL_SECONDS)
            if stop in ready:
                break
            if listener.fileno() in ready:
                sync_server.answer(listener.accept()[0])
            else:
                sync_server.upload_checkpoints()
    sync_server.finish()


class _SyncServer:
    def __init__(self, node_sync: NodeSync) -> None:
        self._node_sync = node_sync
        self._finished = False

    def answer(self, client: socket.socket) -> None:
        """Handle a request of the agent, and send the result."""
        with client, suppress(OSError):
            client.settimeout(_REQUEST_SECONDS)
            operation = self._parse_request(_read_line(client))
            if operation is None:
                return
            problem = self._run(operation)
            fields = {} if problem is None else {"reason": problem.reason, "message": problem.message}
            client.sendall(json.dumps(fields).encode("ascii") + b"\n")

    def upload_checkpoints(self) -> None:
        """Upload without a request. The next sync retries failures, and the final upload reports them."""
        self._run(self._node_sync.upload_checkpoints)

    def finish(self) -> None:
        """Upload all remaining files, unless the agent has already requested it."""
        if not self._finished:
            self._run(self._node_sync.upload_all)

    def _parse_request(self, line: bytes) -> Callable[[], None] | None:
        try:
            request = json.loads(line)
        except ValueError:
            return None
        operation = request.get("ask") if isinstance(request, dict) else None
        # Restarted ranks write new files, so a later refresh needs another final upload.
        self._finished = operation == "finish"
        return {"refresh": self._node_sync.download_checkpoints, "finish": self._node_sync.upload_all}.get(
            str(operation)
        )

    def _run(self, operation: Callable[[], None]) -> StorageError | None:
        try:
            operation()
        except StorageError as problem:
            self._node_sync.dependencies.report(f"{problem.reason}: {problem.message}")
            return problem
        return None


def _read_line(client: socket.socket) -> bytes:
    line = b""
    while b"\n" not in line and len(line) < _MAX_REQUEST_BYTES:
        chunk = client.recv(_MAX_REQUEST_BYTES)
        if not chunk:
            break
        line += chunk
    return line
