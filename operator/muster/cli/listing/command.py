"""`muster list`, `muster top` and their options."""
# ruff: noqa: PLC0415 - only these commands import these modules

from __future__ import annotations

from typing import Annotated

import typer

from muster.cli.job_options import Namespace, Output

AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="Show the jobs of all namespaces.")]


def list_command(*, namespace: Namespace = None, all_namespaces: AllNamespaces = False, output: Output = None) -> None:
    """List the jobs on a cluster, with their phase, ranks and progress.

    On a terminal the messages are shortened to its width. -o json and -o yaml print a List of the resources. The exit
    code is 0 even if there are no jobs.
    """
    from muster.cli.listing.list_jobs import list_jobs
    from muster.cli.output import read_text_format

    _check_place(namespace, all_namespaces=all_namespaces)
    raise typer.Exit(list_jobs(namespace, read_text_format(output), all_namespaces=all_namespaces))


def top(*, namespace: Namespace = None, all_namespaces: AllNamespaces = False) -> None:
    """Show the jobs on a cluster that need attention first: stalled, failed, then the slowest.

    On a terminal, update the jobs until Ctrl-C; otherwise print them once.
    """
    import sys

    from rich.console import Console

    _check_place(namespace, all_namespaces=all_namespaces)
    if sys.stdout.isatty() and not Console(file=sys.stdout).is_dumb_terminal:
        from muster.cli.listing.top import show_live

        raise typer.Exit(show_live(namespace, all_namespaces=all_namespaces))
    from muster.cli.listing.list_jobs import list_by_attention

    raise typer.Exit(list_by_attention(namespace, all_namespaces=all_namespaces))


def _check_place(namespace: str | None, *, all_namespaces: bool) -> None:
    from muster.cli.errors import BadInput

    if all_namespaces and namespace is not None:
        raise BadInput("use either --namespace or --all-namespaces")
