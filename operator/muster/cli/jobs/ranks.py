"""`muster ranks JOB`: the live board of a job on a cluster, from its status."""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import aclosing, suppress

from rich.console import Console

from muster.cli.board.board import board
from muster.cli.board.observed_job import ObservedJob, view_of
from muster.cli.display import BoardDisplay
from muster.cli.jobs.cluster import Target, Wanted, ask_cluster
from muster.cli.jobs.watched_job import JobDeleted, look_at, watch_job

_TICK_SECONDS = 0.5

_SNAPSHOT_WIDTH = 160
"""The width of a board that is written to a file or a pipe: enough for the notes after the numbers."""


def show_ranks(wanted: Wanted) -> int:
    """Show the board: live on a terminal, until the job has ended; else once. Return the exit code."""
    console = Console(file=sys.stdout, highlight=False)
    live = console.file.isatty() and not console.is_dumb_terminal
    return ask_cluster(wanted, _Live(console).show if live else _snapshot)


async def _snapshot(target: Target) -> int:
    view = view_of(await look_at(target), time.time())
    ranks = view.status.ranks.world if view.status.ranks else 0
    console = Console(file=sys.stdout, highlight=False, width=_SNAPSHOT_WIDTH, no_color=True)
    console.print(board(view, _SNAPSHOT_WIDTH, ranks + _SNAPSHOT_WIDTH))
    return 0


class _Live:
    def __init__(self, console: Console) -> None:
        self._display = BoardDisplay(console)
        self._observed: ObservedJob | None = None

    async def show(self, target: Target) -> int:
        ticker = asyncio.create_task(self._tick())
        try:
            async with aclosing(watch_job(target)) as jobs:
                async for observed in jobs:
                    self._observed = observed
                    self._display.show(view_of(observed, time.time()))
                    if observed.is_over:
                        break
        except JobDeleted:
            self._display.note(f"{target} was deleted")
        finally:
            ticker.cancel()
            with suppress(asyncio.CancelledError):
                await ticker
            self._display.close(None if self._observed is None else view_of(self._observed, time.time()))
        return 0

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            if self._observed is not None:
                self._display.show(view_of(self._observed, time.time()))
