"""Runs in an init container with the agent's own Python: copies the files beside it into its argument's folder."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path


def main() -> None:
    """Copy. The folder exists and belongs to root: it is the top of an empty volume."""
    for source in Path(__file__).resolve().parent.iterdir():
        target = Path(sys.argv[1], source.name)
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copy(source, target)


main()
