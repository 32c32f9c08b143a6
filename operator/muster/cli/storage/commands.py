"""The commands of the containers that muster puts beside a job's ranks; they are not for users."""
# ruff: noqa: PLC0415 - each imports its own parts

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

storage = typer.Typer(help="Sync a node's files with S3.", rich_markup_mode=None)

_Plan = Annotated[Path, typer.Option("--plan", metavar="FILE", help="What is brought and kept.")]
_Root = Annotated[Path, typer.Option("--root", metavar="DIR", help="The node's folder.")]


@storage.command()
def download(
    *,
    plan: _Plan,
    root: _Root,
    node: Annotated[int, typer.Option("--node", metavar="N", min=0, help="Which node this is.")],
    config_map: Annotated[
        Path | None, typer.Option("--config-map", metavar="DIR", help="The code's ConfigMap, as a folder.")
    ] = None,
) -> None:
    """Download code, data and snapshots, then exit."""
    from muster.cli.storage.storage import StorageOptions, download_files

    raise typer.Exit(download_files(StorageOptions(plan, root), node, config_map))


@storage.command()
def upload(
    *,
    plan: _Plan,
    root: _Root,
    socket: Annotated[Path, typer.Option("--socket", metavar="SOCKET", help="Where the agent asks.")],
) -> None:
    """Upload snapshots and results until SIGTERM."""
    from muster.cli.storage.storage import StorageOptions, upload_files

    raise typer.Exit(upload_files(StorageOptions(plan, root), socket))
