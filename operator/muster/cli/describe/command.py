"""`muster describe` and its options."""
# ruff: noqa: PLC0415 - only this command imports these modules

from __future__ import annotations

import typer

from muster.cli.job_options import Name, Namespace


def describe(*, job: Name, namespace: Namespace = None) -> None:
    """Show a job on a cluster: state, attempts, nodes, failed ranks with their last lines, events, and what to do."""
    from muster.cli.describe.describe import describe_job
    from muster.cli.jobs.job_reference import JobReference

    raise typer.Exit(describe_job(JobReference(job, namespace)))
