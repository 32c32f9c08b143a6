"""`muster wait JOB`: wait until a job on a cluster has ended."""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import aclosing
from typing import IO, cast

from rich.console import Console

from muster.cli.board.observed_job import ObservedJob, build_view
from muster.cli.display import LineDisplay
from muster.cli.jobs.cluster import ClusterJob, run_on_cluster
from muster.cli.jobs.job_reference import JobReference
from muster.cli.jobs.watched_job import JobDeleted, watch_job
from muster.cli.listing.list_jobs import print_rows
from muster.cli.listing.rows import read_row
from muster.cli.output import TextFormat, format_data
from muster.cli.run.summary import is_complete
from muster.cli.standard_error import StandardError

FAILED = 1
TIMED_OUT = 124
"""The exit code of timeout(1)."""


def wait_for_job(reference: JobReference, timeout: float | None, output: TextFormat | None = None) -> int:
    """Wait until the job has ended, at most `timeout` seconds, and then print it in the format `output`.

    Return 0 if it is Complete, 1 if it has failed or was refused or deleted, and 124 after a timeout.
    """
    console = Console(file=cast(IO[str], StandardError(sys.stderr)), highlight=False)

    async def wait(target: ClusterJob) -> int:
        try:
            async with asyncio.timeout(timeout):
                return await _wait(target, LineDisplay(console), output)
        except TimeoutError:
            console.print(f"{target} has not ended after {timeout:g} s", soft_wrap=True)
            return TIMED_OUT

    return run_on_cluster(reference, wait)


async def _wait(target: ClusterJob, display: LineDisplay, output: TextFormat | None) -> int:
    try:
        async with aclosing(watch_job(target)) as jobs:
            async for observed_job in jobs:
                view = build_view(observed_job, time.time())
                display.show(view)
                if observed_job.is_over or observed_job.is_refused:
                    display.close(view)
                    print_job(observed_job, output)
                    return 0 if is_complete(observed_job.status) else FAILED
    except JobDeleted:
        display.show_note(f"{target} was deleted")
    return FAILED


def print_job(observed_job: ObservedJob, output: TextFormat | None) -> None:
    """Print the job in this format; None: not at all."""
    if output == "wide":
        print_rows([read_row(observed_job.resource)], has_namespaces=False, is_wide=True)
    elif output is not None:
        sys.stdout.write(format_data(dict(observed_job.resource), output))
