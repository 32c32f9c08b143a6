"""A running `muster board`."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

MUSTER = Path(sys.executable).with_name("muster")


@asynccontextmanager
async def serve_board(folder: Path) -> AsyncIterator[str]:
    """Start `muster board` for the runs in `folder`; the value is its URL."""
    process = await asyncio.create_subprocess_exec(MUSTER, "board", "--dir", folder, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield (await asyncio.wait_for(process.stdout.readline(), 60)).decode().strip()
    finally:
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0
