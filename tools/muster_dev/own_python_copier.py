"""Started by the agent's own Python in an init container: copies all that lies beside it into the folder named."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path


def main() -> None:
    """Copy. The folder is there already, and not ours: an empty volume's top belongs to root."""
    for source in Path(__file__).resolve().parent.iterdir():
        target = Path(sys.argv[1], source.name)
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copy(source, target)


main()
