"""`muster stacks JOB`: print the last stacks of ranks that hang, from the pods' logs, where the agents write them."""

from __future__ import annotations

import sys
from contextlib import aclosing
from typing import IO, cast

from rich.console import Console

from muster.cli.board.latest_stacks import LatestStacks
from muster.cli.errors import BadInput
from muster.cli.jobs.cluster import ClusterJob, run_on_cluster
from muster.cli.jobs.job_reference import JobReference
from muster.cli.jobs.log_follower import list_pods
from muster.cli.jobs.logs import check_job_has_logs
from muster.cli.jobs.pod_log import read_lines
from muster.cli.jobs.watched_job import get_job
from muster.cli.standard_error import StandardError
from muster.objects.kubernetes.errors import ApiError


def show_stacks(reference: JobReference, ranks: frozenset[int]) -> int:
    """Print the stacks of `ranks` (empty: all)."""

    async def show(target: ClusterJob) -> int:
        observed_job = await get_job(target)
        check_job_has_logs(ranks, observed_job)
        has_stacks = False
        for pod in await list_pods(target, observed_job):
            latest = LatestStacks() if pod.is_pending else await _read_stacks(target, pod.name)
            for rank, lines in sorted(latest.lines.items()):
                if not ranks or rank in ranks:
                    has_stacks = True
                    _print_stacks(pod.name, rank, lines)
        if not has_stacks:
            raise BadInput(
                f"{target}: there are no stacks in the logs. An agent writes the stacks of its Python ranks when they "
                "complete no step for most of failurePolicy.hangTimeoutSeconds, or of 600 s if that is unset"
            )
        return 0

    return run_on_cluster(reference, show)


async def _read_stacks(target: ClusterJob, pod: str) -> LatestStacks:
    latest = LatestStacks()
    try:
        async with aclosing(read_lines(target, pod, None)) as lines:
            async for text in lines:
                latest.add(text)
    except ApiError as error:
        notes = Console(file=cast(IO[str], StandardError(sys.stderr)), highlight=False)
        notes.print(f"[{pod}] no log: {error.message}", markup=False, soft_wrap=True, style="dim")
    return latest


def _print_stacks(pod: str, rank: int, lines: list[str]) -> None:
    console = Console(file=sys.stdout, highlight=False)
    console.out(f"rank {rank} on {pod} {lines[0]}", highlight=False)
    for line in lines[1:]:
        console.out(f"  {line}", highlight=False)
