"""A node's folders for code, data, checkpoints and results in its storage containers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class NodeFolders:
    """`channels` has a folder for each channel; `notes` has records of downloads and uploads."""

    channels: Path
    checkpoints: Path
    model: Path
    output: Path
    code: Path
    notes: Path


def folders_below(root: Path) -> NodeFolders:
    """Return a node's folders below `root`."""
    return NodeFolders(
        channels=root / "input",
        checkpoints=root / "checkpoints",
        model=root / "model",
        output=root / "output",
        code=root / "code",
        notes=root / "notes",
    )
