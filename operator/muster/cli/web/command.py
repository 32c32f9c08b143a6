"""`muster board` and its options."""
# ruff: noqa: PLC0415 - only this command imports these modules

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_FOLDER = Path("muster-runs")

Folder = Annotated[
    Path | None,
    typer.Option("--dir", metavar="DIR", help="The folder of the runs, or of one run. [default: muster-runs]"),
]
Port = Annotated[
    int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="The port on 127.0.0.1. 0: any free port.")
]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", metavar="NAMESPACE", help="Show the jobs of this namespace of a cluster."),
]
AllNamespaces = Annotated[
    bool, typer.Option("--all-namespaces", "-A", help="Show the jobs of all namespaces of a cluster.")
]
Context = Annotated[
    str | None,
    typer.Option(
        "--context", metavar="CONTEXT", help="The context of the kubeconfig, whose cluster and namespace to show."
    ),
]


def board(
    *,
    folder: Folder = None,
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    context: Context = None,
    port: Port = 0,
) -> None:
    """Serve a web page with the ranks of the runs on this machine, until Ctrl-C. It prints the page's URL.

    With --namespace, --all-namespaces or --context it shows the jobs of a cluster, read with your kubeconfig.
    """
    from muster.cli.errors import BadInput

    if all_namespaces and namespace is not None:
        raise BadInput("use either --namespace or --all-namespaces")
    if namespace is None and context is None and not all_namespaces:
        from muster.cli.web.serve import serve_runs

        raise typer.Exit(serve_runs(folder or DEFAULT_FOLDER, port))
    if folder is not None:
        raise BadInput("use either --dir, for the runs on this machine, or the options of a cluster")
    from muster.cli.web.serve_cluster import serve_cluster

    raise typer.Exit(serve_cluster(namespace, context, port, all_namespaces=all_namespaces))
