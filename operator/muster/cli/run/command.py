"""`muster run` and its options."""
# ruff: noqa: PLC0415 - only this command imports these modules

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from muster.cli.job_options import File, Templates

if TYPE_CHECKING:
    from muster.cli.cluster_run.options import ClusterRunOptions
    from muster.cli.options import RunOptions

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
    str | None, typer.Option("--output", "-o", metavar="json|yaml|wide", help="Print the final job on standard output.")
]
Local = Annotated[bool, typer.Option("--local", help="Run a SageMaker job on this machine, with SageMaker's toolkit.")]
Source = Annotated[
    Path | None,
    typer.Option(
        "--source",
        metavar="PATH",
        help="The folder of the code, instead of spec.source. Only with --local and --on cluster.",
    ),
]
Place = Annotated[
    Literal["cluster"] | None, typer.Option("--on", help="Run the job on kubectl's cluster. [default: this machine]")
]
RunNamespace = Annotated[
    str | None,
    typer.Option(
        "--namespace", "-n", metavar="NAMESPACE", help="The namespace, with --on cluster. [default: the file's]"
    ),
]
Replace = Annotated[
    bool, typer.Option("--replace", help="Delete the job of this name first, if there is one. With --on cluster.")
]
Detach = Annotated[bool, typer.Option("--detach", help="End after the creation of the job. With --on cluster.")]
Logs = Annotated[
    bool | None, typer.Option("--logs/--no-logs", help="Show the ranks' output. [default: only with --on cluster]")
]

_ONLY_HERE = "is for runs on this machine; leave it out with --on cluster"


def run(
    *,
    file: File,
    template: Templates = None,
    on: Place = None,
    inputs: LocalInputs = None,
    checkpoint: LocalCheckpoint = None,
    folder: RunFolder = None,
    keep_here: KeepHere = False,
    logs: Logs = None,
    rank: OnlyRank = None,
    output: FinalOutput = None,
    local: Local = False,
    source: Source = None,
    namespace: RunNamespace = None,
    replace: Replace = False,
    detach: Detach = False,
) -> None:
    """Run a job on this machine, or on a cluster. The exit code is 0 only if the job completes.

    With --on cluster, Ctrl-C suspends the job, and a second Ctrl-C does not wait for that.
    """
    from muster.cli.cluster_run.options import ClusterRunOptions
    from muster.cli.options import RunOptions, read_inputs
    from muster.cli.output import read_text_format

    ranks, text_format = frozenset(rank or ()), read_text_format(output)
    paths = (read_inputs(inputs or ()), checkpoint, folder)
    templates = tuple(template or ())
    here = RunOptions(file, *paths, keep_here, bool(logs or ranks), ranks, text_format, templates)
    there = ClusterRunOptions(
        file, namespace, source, replace, detach, logs is not False, ranks, text_format, templates
    )
    if on is None:
        raise typer.Exit(_run_here(here, there, is_training_job=local))
    _refuse({"--local": local}, _ONLY_HERE)
    raise typer.Exit(_run_there(here, there))


def _run_here(here: RunOptions, there: ClusterRunOptions, *, is_training_job: bool) -> int:
    from muster.cli.garbage_collection import resume_collections

    cluster_options = {"--namespace": there.namespace, "--replace": there.replaces, "--detach": there.detaches}
    _refuse(cluster_options, "works only with --on cluster")
    resume_collections()
    if is_training_job:
        from muster.cli.run.run_training import run_training

        return run_training(here, there.source)
    _refuse({"--source": there.source}, "works only with --local and --on cluster")
    from muster.cli.run.run import run_job

    return run_job(here)


def _run_there(here: RunOptions, there: ClusterRunOptions) -> int:
    from muster.cli.cluster_run.run_on_cluster import run_on_cluster

    _refuse({"--input": here.inputs, "--checkpoint": here.checkpoint, "--dir": here.folder}, _ONLY_HERE)
    _refuse({"--keep-here": here.keeps_here}, _ONLY_HERE)
    return run_on_cluster(there)


def _refuse(options: Mapping[str, object], reason: str) -> None:
    """Raise `BadInput` if one of the options is set."""
    from muster.cli.errors import BadInput

    for name, value in options.items():
        if value:
            raise BadInput(f"{name} {reason}")
