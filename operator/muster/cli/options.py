"""The options of `muster run`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from muster.cli.errors import BadInput
from muster.cli.output import TextFormat


@dataclass(frozen=True)
class RunOptions:
    """The options of `muster run`. If `folder` is None, the run creates a folder. If `ranks` is empty, show all ranks.

    `template_files` have the template that the job names. `keeps_here` is whether to store checkpoints and results in
    the run's folder instead of S3.
    """

    file: str
    inputs: Mapping[str, Path]
    checkpoint: Path | None
    folder: Path | None
    keeps_here: bool
    shows_logs: bool
    ranks: frozenset[int]
    output: TextFormat | None
    template_files: tuple[str, ...] = ()


def read_inputs(pairs: Sequence[str]) -> dict[str, Path]:
    """Parse `NAME=DIR` pairs. Raises `BadInput`."""
    inputs: dict[str, Path] = {}
    for pair in pairs:
        name, equals, folder = pair.partition("=")
        if not (name and equals and folder):
            raise BadInput(f"--input {pair}: expected NAME=DIR, such as train=./data/train")
        if name in inputs:
            raise BadInput(f"--input {name}: set twice")
        inputs[name] = Path(folder).expanduser()
    return inputs


def check_ranks(ranks: Iterable[int], world: int) -> None:
    """Raise `BadInput` for ranks that a job with `world` ranks doesn't have."""
    for rank in sorted(ranks):
        if not 0 <= rank < world:
            raise BadInput(f"--rank {rank}: the job has ranks 0 to {world - 1}")
