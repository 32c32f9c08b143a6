"""A running `muster board-server`."""

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path


def find_free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@asynccontextmanager
async def serve_board(folder: Path, *options: str) -> AsyncIterator[str]:
    """Run it for the cluster of the kubeconfig in `folder`; the value is its URL on 127.0.0.1."""
    port = find_free_port()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "muster.cli.main", "board-server", f"--port={port}", *options),
        env={**os.environ, "KUBECONFIG": str(folder / "kubeconfig")},
    )
    try:
        await asyncio.wait_for(asyncio.to_thread(_await_open, port), 60)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0


def _await_open(port: int) -> None:
    """Wait until the port is open; there is no event for it."""
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
