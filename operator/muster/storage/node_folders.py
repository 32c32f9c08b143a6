"""The folders for a node's code, data, checkpoints and results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class NodeFolders:
    """`channels` contains a folder for each channel. `records` contains records of downloads and uploads."""

    channels: Path
    checkpoints: Path
    model: Path
    output: Path
    code: Path
    records: Path


def make_node_folders(root: Path) -> NodeFolders:
    """Return a node's folders below `root`."""
    return NodeFolders(
        channels=root / "input",
        checkpoints=root / "checkpoints",
        model=root / "model",
        output=root / "output",
        code=root / "code",
        records=root / "records",
    )
