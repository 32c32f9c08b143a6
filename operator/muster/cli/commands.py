"""The commands and their options. Each imports its own parts, so that none waits for another's."""
# ruff: noqa: PLC0415 - as said above

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="muster",
    help="Distributed training jobs, and the truth about every rank.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

File = Annotated[
    str, typer.Option("--file", "-f", metavar="FILE", help="The job's YAML or JSON; - reads standard input.")
]


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer's shape for a flag
    from importlib.metadata import version

    if wanted:
        typer.echo(f"muster {version('muster')}")
        raise typer.Exit


@app.callback()
def _muster(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    pass


@app.command()
def run(
    *,
    file: File,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="NAME=DIR", help="Read this input from DIR instead. May be repeated."),
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option("--checkpoint", metavar="DIR", help="Keep snapshots in DIR, and resume from there.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--dir", metavar="DIR", help="The run's folder. [default: muster-runs/<job>-<id>]")
    ] = None,
    logs: Annotated[bool, typer.Option("--logs", help="Show what the ranks print.")] = False,
    rank: Annotated[
        list[int] | None, typer.Option("--rank", metavar="RANK", help="Show only this rank's lines. May be repeated.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="yaml|json", help="Print the final resource on standard output."),
    ] = None,
) -> None:
    """Run a job on this machine. Exit code 0 only when it is Complete."""
    from muster.cli.options import RunOptions, read_inputs, read_output
    from muster.cli.run import run_job

    options = RunOptions(
        file=file,
        inputs=read_inputs(inputs or ()),
        checkpoint=checkpoint,
        folder=folder,
        shows_logs=logs or bool(rank),
        ranks=frozenset(rank or ()),
        output=read_output(output),
    )
    raise typer.Exit(run_job(options))


@app.command()
def render(*, file: File) -> None:
    """Print what muster would run: the job with its defaults, the plan, each node's command and environment."""
    from muster.cli.job_file import read_job
    from muster.cli.render import render_text

    typer.echo(render_text(read_job(file)), nl=False)


@app.command()
def validate(
    *,
    file: Annotated[
        list[str],
        typer.Option("--file", "-f", metavar="FILE", help="A file of jobs; - reads standard input. May be repeated."),
    ],
) -> None:
    """Check files of jobs. Exit code 1: a job is not valid, 2: a file can't be read.

    Each problem is a line on standard error: `job.yaml:12: spec.nodes: found 0; allowed are 1 to 10000`. Resources of
    other kinds are named and passed over: a file may hold a job beside its ConfigMap.
    """
    from muster.cli.validate import check_files

    raise typer.Exit(check_files(file))


@app.command()
def crd() -> None:
    """Print the CustomResourceDefinition, for `kubectl apply -f -`."""
    from muster.api.crd import crd_yaml

    typer.echo(crd_yaml(), nl=False)


Name = Annotated[str, typer.Argument(metavar="JOB", help="The job's name.")]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", metavar="NAMESPACE", help="Its namespace. [default: the kubeconfig's]"),
]


@app.command()
def ranks(*, job: Name, namespace: Namespace = None) -> None:
    """Show every rank of a job on a cluster: live on a terminal, until it is over; else once."""
    from muster.cli.cluster import Wanted
    from muster.cli.ranks import show_ranks

    raise typer.Exit(show_ranks(Wanted(job, namespace)))


@app.command()
def logs(
    *,
    job: Name,
    namespace: Namespace = None,
    rank: Annotated[
        list[int] | None, typer.Option("--rank", metavar="RANK", help="Show only this rank's lines. May be repeated.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what comes, until the job is over.")
    ] = False,
    tail: Annotated[
        int | None, typer.Option("--tail", metavar="LINES", min=0, help="Begin with the last lines of each node.")
    ] = None,
) -> None:
    """Print what the ranks of a job on a cluster print, each line with its rank."""
    from muster.cli.cluster import Wanted
    from muster.cli.logs import Asked, follow_logs, show_logs

    asked = Asked(frozenset(rank or ()), tail)
    show = follow_logs if follow else show_logs
    raise typer.Exit(show(Wanted(job, namespace), asked))


@app.command()
def wait(
    *,
    job: Name,
    namespace: Namespace = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", min=0, help="Give up after so long: exit code 124.")
    ] = None,
) -> None:
    """Wait until a job on a cluster is over. Exit code 0 only when it is Complete."""
    from muster.cli.cluster import Wanted
    from muster.cli.wait import wait_for_job

    raise typer.Exit(wait_for_job(Wanted(job, namespace), timeout))
