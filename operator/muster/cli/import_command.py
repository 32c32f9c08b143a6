"""`muster import` and its options."""
# ruff: noqa: PLC0415 - only this command imports these modules

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

Script = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A manifest of Kubernetes (.yaml, .yml, .json, or - for standard input), or a launch script of the "
        "SageMaker SDK (.py) or a notebook (.ipynb).",
    ),
]

Runtimes = Annotated[
    list[str] | None,
    typer.Option(
        "--runtime",
        metavar="FILE",
        help="A file with a TrainJob's TrainingRuntime or ClusterTrainingRuntime. May be repeated.",
    ),
]

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
    runtime: Runtimes = None,
    aws_region: Region = None,
    aws_account: Account = None,
    role: Role = None,
    source: Source = None,
    env: Env = None,
    python: Python = None,
    timeout: Timeout = 120,
) -> None:
    """Print the training jobs of a manifest or of a SageMaker launch script as DistributedTrainingJobs.

    Manifests: PyTorchJob, MPIJob, TrainJob, JobSet, Volcano Job, and an Indexed Job that runs torchrun. A launch script
    runs in its own process, with a stand-in for the SageMaker SDK and boto3. No request reaches a cluster or AWS.
    Warnings are on standard error. If muster can't import one of the jobs, it imports none, and the exit code is 1.
    """
    uses_script_options = any((arguments, aws_region, aws_account, role, source, env, python))
    _import_manifest(script, runtime or (), uses_script_options=uses_script_options)

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


def _import_manifest(file: str, runtimes: Sequence[str], *, uses_script_options: bool) -> None:
    """Import the file and exit, if it is a manifest."""
    from muster.cli.errors import BadInput
    from muster.cli.import_manifest import ManifestOptions, import_manifest, is_manifest

    if not is_manifest(file):
        if runtimes:
            raise BadInput("--runtime works only with a manifest")
        return
    if uses_script_options:
        raise BadInput(f"{file}: a manifest takes only the option --runtime; the others are for launch scripts")
    raise typer.Exit(import_manifest(ManifestOptions(file, runtimes)))
