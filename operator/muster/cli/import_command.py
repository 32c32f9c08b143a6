"""`muster import` and its options."""
# ruff: noqa: PLC0415 - only this command imports these modules

from __future__ import annotations

from typing import Annotated

import typer

Script = Annotated[str, typer.Argument(metavar="SCRIPT", help="A launch script (.py) or a notebook (.ipynb).")]

Arguments = Annotated[list[str] | None, typer.Argument(metavar="[-- ARGUMENT...]", help="The arguments of the script.")]

Region = Annotated[str | None, typer.Option("--aws-region", metavar="REGION", help="The jobs' region.")]

Account = Annotated[str | None, typer.Option("--aws-account", metavar="ACCOUNT", help="The jobs' account.")]

Role = Annotated[
    str | None, typer.Option("--role", metavar="ARN", help="The jobs' role, as get_execution_role() returns it.")
]

Source = Annotated[
    str | None, typer.Option("--source", metavar="URL", help="The code's location, in git or S3. [default: in the job]")
]

Env = Annotated[
    list[str] | None,
    typer.Option(
        "--env", metavar="NAME[=VALUE]", help="A variable for the script, which gets no other variable of yours."
    ),
]

Python = Annotated[
    str | None,
    typer.Option("--python", metavar="PYTHON", help="The Python that runs the script. [default: muster's own]"),
]

Timeout = Annotated[float, typer.Option("--timeout", metavar="SECONDS", min=0, help="Kill the script after this time.")]


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

    The script runs in its own process, with a stand-in for the SageMaker SDK and boto3, so no request reaches AWS.
    Warnings are on standard error. If muster can't import one of the jobs, it imports none, and the exit code is 1.
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
