"""A node's folders for code, data, checkpoints and results, as its download and upload containers see them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class NodeFolders:
    """`channels` has a folder for each channel, `notes` has the records of downloads and uploads."""

    channels: Path
    checkpoints: Path
    model: Path
    output: Path
    code: Path
    notes: Path


def below(root: Path) -> NodeFolders:
    """A node's folders below one root."""
    return NodeFolders(
        channels=root / "input",
        checkpoints=root / "checkpoints",
        model=root / "model",
        output=root / "output",
        code=root / "code",
        notes=root / "notes",
    )
