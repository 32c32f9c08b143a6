"""`muster run` and its options."""
# ruff: noqa: PLC0415 - only this command imports these modules

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from muster.cli.job_options import File

LocalInputs = Annotated[
    list[str] | None,
    typer.Option("--input", metavar="NAME=DIR", help="Read the input NAME from DIR. May be repeated."),
]
LocalCheckpoint = Annotated[
    Path | None, typer.Option("--checkpoint", metavar="DIR", help="Store checkpoints in DIR, and resume from them.")
]
RunFolder = Annotated[
    Path | None, typer.Option("--dir", metavar="DIR", help="The run's folder. [default: muster-runs/<job>-<id>]")
]
KeepHere = Annotated[
    bool, typer.Option("--keep-here", help="Store checkpoints and results in the run's folder instead of S3.")
]
OnlyRank = Annotated[
    list[int] | None, typer.Option("--rank", metavar="RANK", help="Show only this rank's lines. May be repeated.")
]
FinalOutput = Annotated[
    str | None, typer.Option("--output", "-o", metavar="yaml|json", help="Print the final resource on standard output.")
]
Local = Annotated[bool, typer.Option("--local", help="Run a SageMaker job on this machine, with SageMaker's toolkit.")]
LocalSource = Annotated[
    Path | None,
    typer.Option("--source", metavar="DIR", help="The folder of the code, instead of spec.source. Only with --local."),
]


def run(
    *,
    file: File,
    inputs: LocalInputs = None,
    checkpoint: LocalCheckpoint = None,
    folder: RunFolder = None,
    keep_here: KeepHere = False,
    logs: Annotated[bool, typer.Option("--logs", help="Show the ranks' output.")] = False,
    rank: OnlyRank = None,
    output: FinalOutput = None,
    local: Local = False,
    source: LocalSource = None,
) -> None:
    """Run a job on this machine. The exit code is 0 only if the job completes."""
    from muster.cli.errors import BadInput
    from muster.cli.garbage_collection import resume_collections
    from muster.cli.options import RunOptions, read_inputs, read_output
    from muster.cli.run.run import run_job

    resume_collections()
    options = RunOptions(
        file=file,
        inputs=read_inputs(inputs or ()),
        checkpoint=checkpoint,
        folder=folder,
        keeps_here=keep_here,
        shows_logs=logs or bool(rank),
        ranks=frozenset(rank or ()),
        output=read_output(output),
    )
    if local:
        from muster.cli.run.run_training import run_training

        raise typer.Exit(run_training(options, source))
    if source is not None:
        raise BadInput("--source works only with --local")
    raise typer.Exit(run_job(options))
