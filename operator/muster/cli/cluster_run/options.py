"""The options of `muster run --on cluster`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from muster.cli.output import TextFormat


@dataclass(frozen=True)
class ClusterRunOptions:
    """`namespace` is None if the user names none; `source` is None for the code of the spec.

    `replaces` is whether to delete a job of the same name first, and `detaches` whether to end after the creation.
    `template_files` have the template that the job names.
    """

    file: str
    namespace: str | None = None
    source: Path | None = None
    replaces: bool = False
    detaches: bool = False
    shows_logs: bool = True
    ranks: frozenset[int] = frozenset()
    output: TextFormat | None = None
    template_files: tuple[str, ...] = ()
