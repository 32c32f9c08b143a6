"""`muster list`: the jobs of a namespace, or of all namespaces."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence

import typer

from muster.cli.listing.fetched_jobs import fetch_jobs
from muster.cli.listing.rows import JobRow, read_row, sort_by_attention, sort_by_name
from muster.cli.listing.table import TableOptions, format_table


def list_jobs(namespace: str | None, *, all_namespaces: bool, by_attention: bool = False) -> int:
    """Print the jobs once; return the exit code. Raises `BadInput`."""
    jobs, place = fetch_jobs(namespace, all_namespaces=all_namespaces)
    if not jobs:
        typer.echo(f"{place or 'all namespaces'}: there are no DistributedTrainingJobs", err=True)
        return 0
    rows = [read_row(job) for job in jobs]
    print_rows(sort_by_attention(rows) if by_attention else sort_by_name(rows), has_namespaces=place is None)
    return 0


def print_rows(rows: Sequence[JobRow], *, has_namespaces: bool) -> None:
    """Print the table. In a file or a pipe, messages are not shortened."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in format_table(rows, TableOptions(has_namespaces=has_namespaces, width=width), time.time()):
        typer.echo(line)
