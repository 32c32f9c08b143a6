"""`muster board` and its options."""
# ruff: noqa: PLC0415 - only this command imports these modules

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Folder = Annotated[
    Path,
    typer.Option("--dir", metavar="DIR", help="The folder of the runs, or the folder of one run."),
]
Port = Annotated[
    int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="The port on 127.0.0.1. 0: any free port.")
]


def board(*, folder: Folder = Path("muster-runs"), port: Port = 0) -> None:
    """Serve a web page with the ranks of the runs on this machine, until Ctrl-C. It prints the page's URL."""
    from muster.cli.web.serve import serve_board

    raise typer.Exit(serve_board(folder, port))
