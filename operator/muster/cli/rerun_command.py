"""`muster rerun` and its options."""
# ruff: noqa: PLC0415 - only this command imports these modules

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from muster.cli.job_options import Name, Namespace, NoWait, Timeout

Source = Annotated[
    Path | None,
    typer.Option(
        "--source", metavar="PATH", help="The folder with all of the job's code, or its only file. [default: .]"
    ),
]
Original = Annotated[bool, typer.Option("--original", help="Run the code of the spec again.")]


def rerun(
    *,
    job: Name,
    namespace: Namespace = None,
    source: Source = None,
    original: Original = False,
    no_wait: NoWait = False,
    timeout: Timeout = None,
) -> None:
    """Start the ranks of a job on a cluster again in the same pods, with edited code, and wait until all run."""
    from muster.cli.errors import BadInput
    from muster.cli.jobs.job_reference import JobReference
    from muster.cli.jobs.requests import WaitOptions
    from muster.cli.jobs.rerun import rerun_job

    if original and source is not None:
        raise BadInput("use either --original, for the code of the spec, or --source, for other code")
    code = None if original else source or Path()
    raise typer.Exit(rerun_job(JobReference(job, namespace), WaitOptions(not no_wait, timeout), code))
