"""The commands of the containers that muster puts beside a job's ranks; nobody types them."""
# ruff: noqa: PLC0415 - each imports its own parts

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

storage = typer.Typer(help="Bring a node's files to S3 and back.", rich_markup_mode=None)

_Plan = Annotated[Path, typer.Option("--plan", metavar="FILE", help="What is brought and kept.")]
_Root = Annotated[Path, typer.Option("--root", metavar="DIR", help="The node's folder.")]


@storage.command()
def bring(
    *,
    plan: _Plan,
    root: _Root,
    node: Annotated[int, typer.Option("--node", metavar="N", min=0, help="Which node this is.")],
    config_map: Annotated[
        Path | None, typer.Option("--config-map", metavar="DIR", help="The code's ConfigMap, as a folder.")
    ] = None,
) -> None:
    """Bring code, data and snapshots, then end."""
    from muster.cli.storage import StorageOptions, bring_files

    raise typer.Exit(bring_files(StorageOptions(plan, root), node, config_map))


@storage.command()
def keep(
    *,
    plan: _Plan,
    root: _Root,
    socket: Annotated[Path, typer.Option("--socket", metavar="SOCKET", help="Where the agent asks.")],
) -> None:
    """Bring snapshots and results away until SIGTERM."""
    from muster.cli.storage import StorageOptions, keep_files

    raise typer.Exit(keep_files(StorageOptions(plan, root), socket))
