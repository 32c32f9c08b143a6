"""What the backend remembers of a job between two turns, for as long as this process leads."""

from __future__ import annotations

from dataclasses import dataclass, field

from muster.aws.place import Place
from muster.aws.sweep import Watch
from muster.aws.training_job import Description
from muster.plan.facts import Trouble
from muster.plan.training_job_facts import Setback


@dataclass
class Ledger:
    """`watched_at` is where `watch` looks.

    `made` is the name of a training job that exists and is the job's, though it may not have been seen yet.
    `taken` is one that exists and is somebody else's, with the words for that. `over` is the last one that was
    seen over, and `over_at` since when that is known. `setback` is what the last action came to, None when it
    went well; `generation` is the spec's that it was about. `searched` is the attempt that a deleted resource's
    training job is looked for as, where its status doesn't tell. `missing_since` is since when SageMaker says that
    there is none where there was one. `forgotten` are the training jobs that SageMaker forgot for muster.
    """

    watch: Watch | None = None
    watched_at: Place | None = None
    made: str = ""
    taken: tuple[str, Trouble] | None = None
    over: Description | None = None
    over_at: float = 0.0
    setback: Setback | None = None
    generation: int = 0
    missing_since: float | None = None
    searched: int = 1
    forgotten: set[str] = field(default_factory=set)

    def look_away(self) -> None:
        """Watch no training job any more."""
        if self.watch is not None:
            self.watch.close()
            self.watch = None

    def look_soon(self) -> None:
        """Something was done to the training job that is watched."""
        if self.watch is not None:
            self.watch.look()
