"""`muster` as a process."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from support.forked_process import ForkedProcess, StartOptions

MUSTER = Path(sys.executable).with_name("muster")

END_SECONDS = 240.0
"""A limit that only a hanging command reaches: four Pythons that import torch take two minutes on a busy machine."""


class MusterProcess(ForkedProcess):
    """A running `muster`."""

    def __init__(self, words: Sequence[str], **options: Unpack[StartOptions]) -> None:
        super().__init__([str(MUSTER), *words], **options)


@dataclass(frozen=True)
class EndedMuster:
    """The result of a command."""

    exit_code: int
    output: str  # standard output
    messages: str  # standard error


def run_muster(
    *words: str, env: Mapping[str, str] | None = None, cwd: Path | None = None, stdin: bytes = b""
) -> EndedMuster:
    """Run a command to its end."""
    pipe = subprocess.PIPE
    with MusterProcess(words, env=env, cwd=cwd, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            output, messages = process.communicate(stdin, timeout=END_SECONDS)
        finally:
            process.kill()
    return EndedMuster(process.returncode, output.decode(), messages.decode())


async def run_with_kubeconfig(kubeconfig: Path | str, *words: str) -> tuple[int, str, str]:
    """Run a command. Return its exit code, standard output and standard error."""
    ended = await asyncio.to_thread(run_muster, *words, env={**os.environ, "KUBECONFIG": str(kubeconfig)})
    return ended.exit_code, ended.output, ended.messages
