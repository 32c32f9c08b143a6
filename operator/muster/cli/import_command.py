"""`muster import` and its options."""
# ruff: noqa: PLC0415 - what it runs on is loaded by it alone

from __future__ import annotations

from typing import Annotated

import typer

Script = Annotated[str, typer.Argument(metavar="SCRIPT", help="A launch script (.py) or a notebook (.ipynb).")]

Arguments = Annotated[list[str] | None, typer.Argument(metavar="[-- ARGUMENT...]", help="The script's own.")]

Region = Annotated[str | None, typer.Option("--aws-region", metavar="REGION", help="Where the jobs are to run.")]

Account = Annotated[str | None, typer.Option("--aws-account", metavar="ACCOUNT", help="The account that they are for.")]

Role = Annotated[
    str | None, typer.Option("--role", metavar="ARN", help="What get_execution_role() gives: the jobs' role.")
]

Source = Annotated[
    str | None, typer.Option("--source", metavar="URL", help="Where the code lies, in git or S3. [default: in the job]")
]

Env = Annotated[
    list[str] | None,
    typer.Option("--env", metavar="NAME[=VALUE]", help="A variable for the script, which gets none of yours else."),
]

Python = Annotated[
    str | None, typer.Option("--python", metavar="PYTHON", help="Run the script with it. [default: muster's own]")
]

Timeout = Annotated[float, typer.Option("--timeout", metavar="SECONDS", min=0, help="End the script then.")]


def import_command(
    *,
    script: Script,
    arguments: Arguments = None,
    aws_region: Region = None,
    aws_account: Account = None,
    role: Role = None,
    source: Source = None,
    env: Env = None,
    python: Python = None,
    timeout: Timeout = 120,
) -> None:
    """Print the training jobs of a SageMaker launch script as DistributedTrainingJobs.

    The script runs in a process of its own, with a stand-in for the SageMaker SDK and for boto3: nothing is sent, and
    AWS isn't asked. Warnings are on standard error. Exit code 1: something of it can't be imported, so nothing is.
    """
    from muster.cli.import_script import ImportOptions, import_script

    options = ImportOptions(
        script=script,
        arguments=arguments or (),
        python=python,
        environment=env or (),
        source=source,
        region=aws_region,
        account=aws_account,
        role=role,
        timeout_seconds=timeout,
    )
    raise typer.Exit(import_script(options))
