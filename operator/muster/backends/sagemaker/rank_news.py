"""What ranks of training jobs say: the backend's interface to it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from muster.api.spec.job import Job
from muster.core.facts import AgentFacts
from muster.objects.aws.place import Place


@dataclass(frozen=True)
class LogSource:
    """The logs of one attempt of a job: those of the training job `name` in `place`.

    `is_over` says that nothing more is written there than what SageMaker still has to pass on, `has_failed` that it did
    not complete, and that its launchers may tell which rank failed. `has_reports`: its ranks may write lines of
    their own.
    """

    job: Job
    attempt: int
    name: str
    place: Place
    is_over: bool
    has_failed: bool = False
    has_reports: bool = True


class RankNews(Protocol):
    """What the ranks of all followed training jobs said.

    Nodes are as ranks count them, the first of SM_HOSTS 0; reports bear the attempt, replacement 0.
    """

    @property
    def heartbeat_seconds(self) -> float:
        """How long a node that works may be without a word: three times that, and its ranks are Unknown."""
        ...

    def follow(self, source: LogSource, wake: Callable[[], None]) -> None:
        """Read these logs from now on, and call `wake` when there is news; said anew each turn, cheap when known.

        Reading ends by itself once `is_over` was said and all has been read.
        """
        ...

    def agents(self, job_uid: str, attempt: int) -> tuple[AgentFacts, ...]:
        """The newest of each node that was heard, in the nodes' order; none for an attempt that is not followed."""
        ...

    def is_complete(self, job_uid: str, attempt: int) -> bool:
        """Whether nothing more is to come: the attempt is over and its logs were read to their ends."""
        ...

    def forget(self, job_uid: str) -> None:
        """The job's resource is gone."""
        ...
