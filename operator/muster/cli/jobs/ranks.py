"""`muster ranks JOB`: the board of a job on a cluster, from its status.

Imports that only one function needs are inside it: a command that draws the board once needs neither the event loop nor
the client that watches the job, whose imports would take most of the command's time.
"""
# ruff: noqa: PLC0415 - see above

from __future__ import annotations

import os
import sys
import time

from rich.console import Console

from muster.cli.board.board import draw_board
from muster.cli.board.observed_job import ObservedJob, build_view, read_observed_job
from muster.cli.errors import BadInput
from muster.cli.jobs.api_problems import explain_api_error
from muster.cli.jobs.job_reference import JobReference, check_names
from muster.cli.output import TextFormat, format_data
from muster.clients.kubernetes.direct_access import find_direct_access
from muster.clients.kubernetes.direct_requests import get_object
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import JOBS

_FILE_WIDTH = 160
"""The width of a board that is written to a file or a pipe: enough for the notes after the numbers."""


def show_ranks(reference: JobReference, output: TextFormat | None = None) -> int:
    """Show the board: live on a terminal, until the job has ended; else once. Return the exit code."""
    check_names(reference)
    if output is not None:
        _print_ranks(_get_job(reference), output)
        return 0
    console = Console(file=sys.stdout, highlight=False)
    if console.file.isatty() and not console.is_dumb_terminal:
        from muster.cli.jobs.cluster import run_on_cluster
        from muster.cli.jobs.live_ranks import LiveBoard

        return run_on_cluster(reference, LiveBoard(console).show)
    _show_once(_get_job(reference))
    return 0


def _get_job(reference: JobReference) -> ObservedJob:
    """Read the job. Raises `BadInput` with the problem."""
    access = find_direct_access(os.environ)
    if access is None:
        from muster.cli.jobs.cluster import run_on_cluster
        from muster.cli.jobs.watched_job import get_job

        return run_on_cluster(reference, get_job)
    namespace = reference.namespace or access.namespace
    try:
        return read_observed_job(get_object(access, JOBS, namespace, reference.name))
    except ApiError as error:
        raise BadInput(explain_api_error(error, namespace, reference.name)) from None


def _print_ranks(observed_job: ObservedJob, output: TextFormat) -> None:
    from muster.cli.jobs.rank_data import build_rank_data, format_rank_lines

    view = build_view(observed_job, time.time())
    if output == "wide":
        sys.stdout.writelines(f"{line}\n" for line in format_rank_lines(view))
    else:
        sys.stdout.write(format_data(build_rank_data(observed_job, view), output))


def _show_once(observed_job: ObservedJob) -> None:
    view = build_view(observed_job, time.time())
    ranks = view.status.ranks.world if view.status.ranks else 0
    console = Console(file=sys.stdout, highlight=False, width=_FILE_WIDTH, no_color=True)
    console.print(draw_board(view, _FILE_WIDTH, ranks + _FILE_WIDTH))
