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

from support.free_port import free_port


@asynccontextmanager
async def serve_board(folder: Path, *options: str, tls_port: int | None = None) -> AsyncIterator[str]:
    """Run it for the cluster of the kubeconfig in `folder`; the value is its URL on 127.0.0.1."""
    port = free_port()
    ports = {"port": port} if tls_port is None else {"port": port, "tls-port": tls_port}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "muster.cli.main", "board-server"),
        *(f"--{name}={number}" for name, number in ports.items()),
        *options,
        env={**os.environ, "KUBECONFIG": str(folder / "kubeconfig")},
    )
    try:
        for each in ports.values():
            await asyncio.wait_for(asyncio.to_thread(_await_open, each), 60)
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
