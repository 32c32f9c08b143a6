"""`muster ranks JOB`: the live board of a job on a cluster, from its status."""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import aclosing, suppress

from rich.console import Console

from muster.cli.board.board import draw_board
from muster.cli.board.observed_job import ObservedJob, build_view
from muster.cli.display import BoardDisplay
from muster.cli.jobs.cluster import ClusterJob, JobReference, run_on_cluster
from muster.cli.jobs.watched_job import JobDeleted, get_job, watch_job

_TICK_SECONDS = 0.5

_FILE_WIDTH = 160
"""The width of a board that is written to a file or a pipe: enough for the notes after the numbers."""


def show_ranks(reference: JobReference) -> int:
    """Show the board: live on a terminal, until the job has ended; else once. Return the exit code."""
    console = Console(file=sys.stdout, highlight=False)
    live = console.file.isatty() and not console.is_dumb_terminal
    return run_on_cluster(reference, _LiveBoard(console).show if live else _show_once)


async def _show_once(target: ClusterJob) -> int:
    view = build_view(await get_job(target), time.time())
    ranks = view.status.ranks.world if view.status.ranks else 0
    console = Console(file=sys.stdout, highlight=False, width=_FILE_WIDTH, no_color=True)
    console.print(draw_board(view, _FILE_WIDTH, ranks + _FILE_WIDTH))
    return 0


class _LiveBoard:
    def __init__(self, console: Console) -> None:
        self._display = BoardDisplay(console)
        self._observed_job: ObservedJob | None = None

    async def show(self, target: ClusterJob) -> int:
        ticker = asyncio.create_task(self._tick())
        try:
            async with aclosing(watch_job(target)) as jobs:
                async for observed_job in jobs:
                    self._observed_job = observed_job
                    self._display.show(build_view(observed_job, time.time()))
                    if observed_job.is_over:
                        break
        except JobDeleted:
            self._display.show_note(f"{target} was deleted")
        finally:
            ticker.cancel()
            with suppress(asyncio.CancelledError):
                await ticker
            self._display.close(None if self._observed_job is None else build_view(self._observed_job, time.time()))
        return 0

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            if self._observed_job is not None:
                self._display.show(build_view(self._observed_job, time.time()))
