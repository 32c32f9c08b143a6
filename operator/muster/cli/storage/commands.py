"""The commands of the storage containers in a job's pods, which users do not run."""
# ruff: noqa: PLC0415 - each command imports its modules itself

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

storage = typer.Typer(help="Sync a node's files with S3.", rich_markup_mode=None)

_Plan = Annotated[Path, typer.Option("--plan", metavar="FILE", help="The storage plan.")]
_Root = Annotated[Path, typer.Option("--root", metavar="DIR", help="The node's folder.")]


@storage.command()
def download(
    *,
    plan: _Plan,
    root: _Root,
    node: Annotated[int, typer.Option("--node", metavar="N", min=0, help="The node's rank.")],
    config_map: Annotated[
        Path | None,
        typer.Option("--config-map", metavar="DIR", help="The folder with the files of the code's ConfigMap."),
    ] = None,
) -> None:
    """Download code, data and checkpoints, then exit."""
    from muster.cli.storage.storage import StorageOptions, download_files

    raise typer.Exit(download_files(StorageOptions(plan, root), node, config_map))


@storage.command()
def upload(
    *,
    plan: _Plan,
    root: _Root,
    socket: Annotated[Path, typer.Option("--socket", metavar="SOCKET", help="The socket for the agent's requests.")],
) -> None:
    """Upload checkpoints and results until SIGTERM."""
    from muster.cli.storage.storage import StorageOptions, upload_files

    raise typer.Exit(upload_files(StorageOptions(plan, root), socket))
