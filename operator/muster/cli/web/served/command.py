"""`muster board-server` and its options."""
# ruff: noqa: PLC0415 - only this command imports these modules

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Namespaces = Annotated[
    list[str] | None,
    typer.Option(
        "--namespace", metavar="NAMESPACE", help="A namespace whose jobs to show. May be repeated. [default: all]"
    ),
]
Port = Annotated[int, typer.Option(min=1, max=65535, help="The port on 127.0.0.1, for kubectl port-forward.")]
HealthPort = Annotated[
    int | None, typer.Option(min=1, max=65535, help="The port of /healthz and /readyz. [default: none]")
]
TlsPortOption = Annotated[
    int | None, typer.Option(min=1, max=65535, help="The TLS port on all addresses. [default: none]")
]
TlsFolder = Annotated[Path, typer.Option(metavar="DIR", help="The folder with tls.crt and tls.key, for --tls-port.")]
TlsHosts = Annotated[
    list[str] | None,
    typer.Option("--tls-host", metavar="HOST", help="A host name of the TLS port in URLs. May be repeated."),
]
Logs = Annotated[bool, typer.Option("--logs", help="Show the output of ranks to readers who may get pods/log.")]


def board_server(
    *,
    namespace: Namespaces = None,
    port: Port = 8090,
    health_port: HealthPort = None,
    tls_port: TlsPortOption = None,
    tls_dir: TlsFolder = Path("/etc/muster-board"),
    tls_host: TlsHosts = None,
    logs: Logs = False,
    log_format: Annotated[str, typer.Option(metavar="plain|json", help="The format of log lines.")] = "plain",
) -> None:
    """Serve the board of a cluster's jobs. muster's chart runs this command in a pod, if board.enabled is true.

    Each request needs a token of the cluster, and readers see only jobs that they may read with kubectl.
    """
    from muster.cli.errors import BadInput
    from muster.cli.operator.operator import read_log_format
    from muster.cli.web.served.serve_board import BoardOptions, TlsPort, serve_board

    if tls_port is not None and not tls_host:
        raise BadInput("--tls-port needs --tls-host: the names under which browsers reach it")
    tls = None
    if tls_port is not None:
        tls = TlsPort(tls_port, tls_dir / "tls.crt", tls_dir / "tls.key", tuple(tls_host or ()))
    options = BoardOptions(tuple(namespace or ()), port, health_port, tls, logs)
    raise typer.Exit(serve_board(options, read_log_format(log_format)))
