"""The `muster` command."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from muster.cli.crd import crd
from muster.cli.options import RunOptions, read_inputs
from muster.cli.problem import BadInput
from muster.cli.resource import OutputFormat
from muster.cli.validate import validate

USAGE_ERROR = 2
INTERRUPTED = 130

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
    from muster.cli.run import run_job  # noqa: PLC0415 - validate and crd need not wait for the network's libraries

    options = RunOptions(
        file=file,
        inputs=read_inputs(inputs or ()),
        checkpoint=checkpoint,
        folder=folder,
        shows_logs=logs or bool(rank),
        ranks=frozenset(rank or ()),
        output=_read_output(output),
    )
    raise typer.Exit(run_job(options))


@app.command()
def render(*, file: File) -> None:
    """Print what muster would run: the job with its defaults, the plan, each node's command and environment."""
    from muster.cli.job_file import read_job  # noqa: PLC0415 - as above
    from muster.cli.render import render_text  # noqa: PLC0415 - as above

    typer.echo(render_text(read_job(file)), nl=False)


app.command()(validate)
app.command()(crd)


def _read_output(text: str | None) -> OutputFormat | None:
    match text:
        case None | "yaml" | "json":
            return text
    raise BadInput(f"-o {text}: expected yaml or json")


def main() -> None:
    """Run the command and leave with its exit code: 2 for bad input, 130 for Ctrl-C before a job began."""
    try:
        app(standalone_mode=True)
    except BadInput as problem:
        typer.echo(f"muster: {problem}", err=True)
        sys.exit(USAGE_ERROR)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
