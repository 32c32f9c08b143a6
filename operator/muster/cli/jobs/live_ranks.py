"""The live board of a job on a cluster, until the job has ended."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing, suppress

from rich.console import Console

from muster.cli.board.observed_job import ObservedJob, build_view
from muster.cli.display import BoardDisplay
from muster.cli.jobs.cluster import ClusterJob
from muster.cli.jobs.watched_job import JobDeleted, watch_job

_TICK_SECONDS = 0.5


class LiveBoard:
    """A board that shows each change of the job's status, and the passing time."""

    def __init__(self, console: Console) -> None:
        self._display = BoardDisplay(console)
        self._observed_job: ObservedJob | None = None

    async def show(self, target: ClusterJob) -> int:
        """Show the job until it has ended; return the exit code."""
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
