"""`muster migrate` and its options."""
# ruff: noqa: PLC0415 - only this command imports these modules

from __future__ import annotations

from typing import Annotated

import typer

From = Annotated[
    str,
    typer.Option("--from", metavar="kubeflow|jobset|volcano", help="The operator whose training jobs muster lists."),
]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", metavar="NAMESPACE", help="The namespace. [default: the kubeconfig's]"),
]
AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="List all namespaces.")]


def migrate(*, source: From, namespace: Namespace = None, all_namespaces: AllNamespaces = False) -> None:
    """List the training jobs of another operator on a cluster, and what each would become.

    The command only reads. The exit code is 1 if muster can't import one of the jobs; `muster import` prints a job.
    """
    from muster.cli.errors import BadInput
    from muster.cli.migrate.migrate import list_jobs

    if all_namespaces and namespace is not None:
        raise BadInput("use either --namespace or --all-namespaces")
    raise typer.Exit(list_jobs(source, namespace, all_namespaces=all_namespaces))
