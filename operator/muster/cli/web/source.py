"""Where the board's page gets its jobs from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from muster.cli.board.frame import Frame
from muster.cli.board.rank_output import RankOutput


class JobNotFound(Exception):
    """There is no job with this name, or its state can't be read."""


class NotShown(Exception):
    """The board does not show this. Its text says why, and what to do."""


@dataclass(frozen=True)
class JobEntry:
    """A job in the list. `key` identifies it in a URL; `title` is its name in the list."""

    key: str
    name: str
    phase: str
    world: int
    title: str = ""


class JobSource(Protocol):
    """The jobs that the page shows."""

    async def list_jobs(self) -> Sequence[JobEntry]:
        """Return the jobs, the newest first. Raises `NotShown`."""
        ...

    async def read_frame(self, key: str) -> Frame:
        """Return the newest frame of the job: the same object until the job's state changes.

        Raises `JobNotFound` and `NotShown`.
        """
        ...

    async def read_rank(self, key: str, rank: int) -> RankOutput:
        """Return the last output of a rank.

        Raises `JobNotFound`, also for a rank that the job doesn't have, and `NotShown`.
        """
        ...
