"""Copies the agent's own Python from its folder into the folder of the argument. It runs in an init container."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path


def main() -> None:
    """Copy the files. The target exists and belongs to root, because it is the root of an empty volume."""
    for source in Path(__file__).resolve().parent.iterdir():
        target = Path(sys.argv[1], source.name)
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copy(source, target)


main()
