"""`muster list`: the jobs of a namespace, or of all namespaces."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence

import typer

from muster.api.document import JSON
from muster.cli.listing.fetched_jobs import fetch_jobs
from muster.cli.listing.rows import JobRow, read_row, sort_by_attention, sort_by_name
from muster.cli.listing.table import TableOptions, format_table
from muster.cli.output import TextFormat, format_data
from muster.objects.kubernetes.kinds import Object


def list_jobs(namespace: str | None, output: TextFormat | None, *, all_namespaces: bool) -> int:
    """Print the jobs; return the exit code. Raises `BadInput`."""
    jobs, place = fetch_jobs(namespace, all_namespaces=all_namespaces)
    if output in ("json", "yaml"):
        typer.echo(format_data(_build_list(jobs), output), nl=False)
    elif jobs:
        rows = sort_by_name(map(read_row, jobs))
        print_rows(rows, has_namespaces=place is None, is_wide=output == "wide")
    else:
        _say_none(place)
    return 0


def list_by_attention(namespace: str | None, *, all_namespaces: bool) -> int:
    """Print the jobs once, as `muster top` shows them; return the exit code. Raises `BadInput`."""
    jobs, place = fetch_jobs(namespace, all_namespaces=all_namespaces)
    if jobs:
        print_rows(sort_by_attention(map(read_row, jobs)), has_namespaces=place is None)
    else:
        _say_none(place)
    return 0


def print_rows(rows: Sequence[JobRow], *, has_namespaces: bool, is_wide: bool = False) -> None:
    """Print the table. In a file or a pipe, messages are not shortened."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in format_table(rows, TableOptions(has_namespaces, is_wide, width), time.time()):
        typer.echo(line)


def _build_list(jobs: Sequence[Object]) -> JSON:
    """Return the object that `kubectl get -o json` prints for several objects."""
    return {
        "apiVersion": "v1",
        "kind": "List",
        "metadata": {"resourceVersion": ""},
        "items": [dict(job) for job in jobs],
    }


def _say_none(place: str | None) -> None:
    typer.echo(f"{place or 'all namespaces'}: there are no DistributedTrainingJobs", err=True)
