"""`muster suspend`, `resume` and `restart`, and their options."""
# ruff: noqa: PLC0415 - only these commands import these modules

from __future__ import annotations

import typer

from muster.cli.job_options import Name, Namespace, NoWait, Timeout


def suspend(*, job: Name, namespace: Namespace = None, no_wait: NoWait = False, timeout: Timeout = None) -> None:
    """Stop the ranks of a job on a cluster, delete its pods, and wait until it is suspended."""
    from muster.cli.jobs.job_reference import JobReference
    from muster.cli.jobs.requests import WaitOptions, suspend_job

    raise typer.Exit(suspend_job(JobReference(job, namespace), WaitOptions(not no_wait, timeout)))


def resume(*, job: Name, namespace: Namespace = None, no_wait: NoWait = False, timeout: Timeout = None) -> None:
    """Start a suspended job on a cluster, and wait until all its ranks run."""
    from muster.cli.jobs.job_reference import JobReference
    from muster.cli.jobs.requests import WaitOptions, resume_job

    raise typer.Exit(resume_job(JobReference(job, namespace), WaitOptions(not no_wait, timeout)))


def restart(*, job: Name, namespace: Namespace = None, no_wait: NoWait = False, timeout: Timeout = None) -> None:
    """Stop the ranks of a job on a cluster, start them again in the same pods, and wait until all run."""
    from muster.cli.jobs.job_reference import JobReference
    from muster.cli.jobs.requests import WaitOptions, restart_job

    raise typer.Exit(restart_job(JobReference(job, namespace), WaitOptions(not no_wait, timeout)))
