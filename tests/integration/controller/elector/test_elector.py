"""The Lease and the health endpoints while the main process is busy, paused or dead."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import aiohttp
import pytest

from fakes.api_client import api_client
from integration.controller.elector.leading_program import TIMES
from integration.controller.elector.lease_server import LeaseServer
from support.free_port import free_port

PROGRAM = Path(__file__).with_name("leading_program.py")
BUSY_SECONDS = TIMES.give_up + 1.0
SLACK_SECONDS = 2.0
"""For a machine that is busy with other work."""


@dataclass
class Program:
    """A main process and its elector, whose Lease is `server`'s."""

    server: LeaseServer
    port: int
    process: asyncio.subprocess.Process
    answers: list[tuple[float, str]] = field(default_factory=list)

    async def says(self, pattern: str) -> str:
        """Wait for a line."""
        assert self.process.stdout is not None
        async with asyncio.timeout(180):
            async for line in self.process.stdout:
                if re.fullmatch(pattern, line.decode().strip()):
                    return line.decode().strip()
        raise AssertionError(f"it ended before it said {pattern}")

    def tell(self, line: str) -> None:
        """Send it a command."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())

    async def ask(self) -> tuple[float, str]:
        """Return the time that /healthz takes to answer, and its answer."""
        began = time.monotonic()
        async with aiohttp.ClientSession() as asker, asker.get(f"http://127.0.0.1:{self.port}/healthz") as answer:
            return time.monotonic() - began, await answer.text()

    async def watch_health(self) -> None:
        """Request it repeatedly."""
        while True:
            self.answers.append(await self.ask())
            await asyncio.sleep(0.2)


def child_of(pid: int) -> int:
    """Its only child process."""
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii"))


@asynccontextmanager
async def program(folder: Path) -> AsyncIterator[Program]:
    server = LeaseServer()
    port = free_port()
    async with api_client(server.app, folder):
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            str(PROGRAM),
            "ours",
            str(port),
            env={**os.environ, "KUBECONFIG": str(folder / "kubeconfig")},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            yield Program(server, port, process)
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


# Python code lets other threads run, C code that holds the lock does not. `burn` keeps a processor busy for seconds.
@pytest.mark.parametrize("work", [pytest.param("burn", marks=(pytest.mark.long, pytest.mark.alone)), "hold"])
async def test_a_busy_main_process_delays_neither_the_lease_nor_the_kubelet(tmp_path: Path, work: str) -> None:
    async with program(tmp_path) as ours:
        await ours.says(r"leads \d+")
        before = len(ours.server.renewals)
        watching = asyncio.create_task(ours.watch_health())
        ours.tell(f"{work} {BUSY_SECONDS}")
        await ours.says("burnt")
        watching.cancel()
        times = ours.server.renewals[before - 1 :]
        gaps = [after - at for at, after in pairwise(times)]
        assert len(gaps) >= BUSY_SECONDS / (TIMES.renew + SLACK_SECONDS) - 1
        assert max(gaps) < TIMES.renew + SLACK_SECONDS
        assert max(seconds for seconds, _ in ours.answers) < SLACK_SECONDS
        assert {text for _, text in ours.answers} == {"ok\n"}
        sys.stdout.write(f"{work}: renewals at most {max(gaps):.3f} s apart, /healthz {max(ours.answers)[0]:.3f} s\n")
        ours.tell("act")
        await ours.says("done")


async def test_a_stopped_process_does_nothing_before_it_has_heard_of_the_lease(tmp_path: Path) -> None:
    """Either both processes are stopped, or the main process alone. Both waits run at the same time."""
    for name in ("both", "main"):
        (tmp_path / name).mkdir()
    await asyncio.gather(stop_for_too_long(tmp_path / "both", os.killpg), stop_for_too_long(tmp_path / "main", os.kill))


async def stop_for_too_long(folder: Path, stop: Callable[[int, int], None]) -> None:
    async with program(folder) as ours:
        await ours.says(r"leads \d+")
        ours.tell("act")
        await ours.says("done")
        stop(ours.process.pid, signal.SIGSTOP)
        # A renewal in progress may still arrive.
        await asyncio.sleep(TIMES.renew)
        renewals = len(ours.server.renewals)
        await asyncio.sleep(TIMES.give_up)
        assert len(ours.server.renewals) == renewals
        ours.server.take("another")
        ours.server.changes.clear()
        ours.tell("act")
        stop(ours.process.pid, signal.SIGCONT)
        # In either order.
        assert {(await ours.says("refused NotLeading|stopped .*")).split()[0] for _ in range(2)} == {
            "refused",
            "stopped",
        }
        ours.tell("act")
        await ours.says("refused NotLeading")
        assert ours.server.changes == []
        assert ours.server.holder == "another"


async def test_a_lease_taken_away_ends_what_leads_and_the_end_of_the_elector_ends_the_process(tmp_path: Path) -> None:
    async with program(tmp_path) as ours:
        first = int((await ours.says(r"leads \d+")).split()[1])
        ours.server.take("another")
        await ours.says(f"stopped {first}")
        # The other process lets the Lease expire.
        second = int((await ours.says(r"leads \d+")).split()[1])
        assert second > first + 1
        os.kill(child_of(ours.process.pid), signal.SIGKILL)
        await ours.says(f"stopped {second}")
        async with asyncio.timeout(60.0):
            assert await ours.process.wait() == 1


async def test_the_elector_ends_with_a_main_process_that_was_killed(tmp_path: Path) -> None:
    async with program(tmp_path) as ours:
        await ours.says(r"leads \d+")
        ours.process.kill()
        await ours.process.wait()
        holder, renewals = ours.server.holder, len(ours.server.renewals)
        async with asyncio.timeout(60.0):
            while True:
                try:
                    await ours.ask()
                except aiohttp.ClientConnectionError:
                    break
                await asyncio.sleep(0.05)
        assert len(ours.server.renewals) <= renewals + 1
        # Its last requests may still be executed: no other process leads before the Lease has expired.
        assert (holder, ours.server.holder) == ("ours", "ours")
