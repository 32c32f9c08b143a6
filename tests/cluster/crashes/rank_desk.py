"""A server to which ranks report their start. It sends their exit code, so tests choose the length of each start."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

from cluster import lan

RANK = """
import os, socket, sys
desk = socket.create_connection(("{host}", {port}))
desk.sendall((sys.argv[1] + " " + os.environ["RANK"] + "\\n").encode())
sys.exit(int(desk.makefile().readline() or 0))
"""


@dataclass(frozen=True)
class Begun:
    """A rank of a job has started for the `start`-th time (from 1). `until_all` waits until this many ranks have."""

    job: str
    rank: int
    start: int
    until_all: Callable[[int], Awaitable[None]]


Order = Callable[[Begun], Awaitable[int]]
"""The exit code with which the rank ends, once it may end."""


@dataclass
class RankDesk:
    """`orders` has each job's; `starts` counts by job and rank. `on_begin` is called with the job's name."""

    on_begin: Callable[[str], None]
    orders: dict[str, Order] = field(default_factory=dict)
    starts: dict[str, Counter[int]] = field(default_factory=dict)
    port: int = 0
    _talks: set[asyncio.Task[None]] = field(default_factory=set)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @contextlib.asynccontextmanager
    async def served(self) -> AsyncIterator[None]:
        """Listen inside the block."""
        server = await asyncio.start_server(self._greet, lan.HOST, 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()
            for talk in self._talks:
                talk.cancel()
            await asyncio.gather(*self._talks, return_exceptions=True)

    def command(self, job: str) -> list[str]:
        """Return the command of the job's ranks."""
        return ["python3", "-c", RANK.format(host=lan.HOST, port=self.port), job]

    async def _until_begun(self, counts: Counter[int], ranks: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: len(counts) >= ranks)

    def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.create_task(self._hear(reader, writer))
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            job, rank = (await reader.readline()).decode().split()
            counts = self.starts.setdefault(job, Counter())
            counts[int(rank)] += 1
            self.on_begin(job)
            async with self._changed:
                self._changed.notify_all()
            begun = Begun(job, int(rank), counts[int(rank)], partial(self._until_begun, counts))
            ends = asyncio.ensure_future(self.orders[job](begun))
            leaves = asyncio.ensure_future(reader.read())
            await asyncio.wait((ends, leaves), return_when=asyncio.FIRST_COMPLETED)
            if ends.done():
                writer.write(f"{ends.result()}\n".encode())
            for task in (ends, leaves):
                task.cancel()
        finally:
            writer.close()
