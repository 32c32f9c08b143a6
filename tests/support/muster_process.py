"""The installed `muster` as a process, with the kubeconfig of a fake API server."""

import asyncio
import os
import sys
from pathlib import Path

MUSTER = Path(sys.executable).parent / "muster"


async def run_muster(kubeconfig: Path | str, *words: str) -> tuple[int | None, str, str]:
    """Run a command. Return its exit code, standard output and standard error."""
    process = await asyncio.create_subprocess_exec(
        *(str(MUSTER), *words),
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, messages = await process.communicate()
    return process.returncode, output.decode(), messages.decode()
