"""`muster top`: the jobs that need attention first, live on a terminal."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from muster.api.plurals import pluralize
from muster.cli.errors import BadInput
from muster.cli.jobs.api_problems import explain_list_error
from muster.cli.jobs.cluster import run_with_client
from muster.cli.listing.rows import Attention, JobRow, sort_by_attention
from muster.cli.listing.table import TableOptions, format_counts, format_table, shorten
from muster.cli.listing.watched_jobs import WatchedJobs
from muster.clients.kubernetes.client import Client
from muster.objects.kubernetes.errors import ApiError

_FRAME_SECONDS = 1.0

_STYLES: Mapping[Attention, str] = MappingProxyType(
    {
        Attention.STALLED: "bold red",
        Attention.FAILED: "red",
        Attention.RESTARTING: "yellow",
        Attention.SLOW: "yellow",
        Attention.RUNNING: "green",
        Attention.WAITING: "",
        Attention.ENDED: "bright_black",
    }
)


def show_live(namespace: str | None, *, all_namespaces: bool) -> int:
    """Show the jobs until Ctrl-C; return the exit code. Raises `BadInput`."""

    async def work(client: Client, own_namespace: str) -> int:
        jobs = WatchedJobs(client, None if all_namespaces else own_namespace)
        try:
            await jobs.load()
        except ApiError as error:
            raise BadInput(explain_list_error(error)) from None
        async with asyncio.TaskGroup() as group:
            group.create_task(jobs.follow())
            await _draw_until_cancelled(jobs)
        return 0

    with suppress(KeyboardInterrupt):
        run_with_client(namespace, work)
    return 0


async def _draw_until_cancelled(jobs: WatchedJobs) -> None:
    console = Console(file=sys.stdout, highlight=False)
    with Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:
        while True:
            rows = sort_by_attention(jobs.rows.values())
            live.update(draw_jobs(rows, jobs, console.size, time.time()), refresh=True)
            await asyncio.sleep(_FRAME_SECONDS)


def draw_jobs(rows: Sequence[JobRow], jobs: WatchedJobs, size: tuple[int, int], now: float) -> Group:
    """Draw the first jobs, as many as fit on a terminal with these columns and lines."""
    width, height = size
    header = f"{jobs.namespace or 'all namespaces'}  ·  {format_counts(rows)}"
    texts = [_make_line(shorten(header, width), "bold")]
    if jobs.problem:
        texts.append(_make_line(shorten(jobs.problem, width), "bold yellow"))
    title, *lines = format_table(rows, TableOptions(has_namespaces=jobs.namespace is None, width=width), now)
    texts.append(_make_line(title, "dim"))
    free = max(0, height - len(texts))
    shown = len(lines) if len(lines) <= free else max(0, free - 1)
    texts += [_make_line(line, _STYLES[row.attention]) for line, row in zip(lines[:shown], rows, strict=False)]
    if shown < len(lines):
        texts.append(_make_line(f"and {pluralize(len(lines) - shown, 'more job')}", "dim"))
    return Group(*texts)


def _make_line(text: str, style: str) -> Text:
    return Text(text, style=style, no_wrap=True, overflow="crop")
