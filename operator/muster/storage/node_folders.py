"""Where a node's code, data, snapshots and results are, as its download and upload containers see it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class NodeFolders:
    """`channels` has a folder for each channel, `notes` what says how far everything is."""

    channels: Path
    checkpoints: Path
    model: Path
    output: Path
    code: Path
    notes: Path


def below(root: Path) -> NodeFolders:
    """A node's folders where they have one root."""
    return NodeFolders(
        channels=root / "input",
        checkpoints=root / "checkpoints",
        model=root / "model",
        output=root / "output",
        code=root / "code",
        notes=root / "notes",
    )
