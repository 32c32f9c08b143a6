"""The interface of a reader of the ranks' reports on SageMaker."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from muster.api.spec.job import Job
from muster.core.facts import AgentFacts
from muster.objects.aws.access import AwsAccess


@dataclass(frozen=True)
class LogSource:
    """The logs of one attempt of a job: of the training job `name` in `aws_access`.

    `is_over`: the training job has ended. `has_failed`: it failed, and its launchers' lines may name the failed rank.
    `has_reports`: its ranks may write reports as lines.
    """

    job: Job
    attempt: int
    name: str
    aws_access: AwsAccess
    is_over: bool
    has_failed: bool = False
    has_reports: bool = True


class RankReports(Protocol):
    """The reports of the ranks of all followed training jobs.

    A node's index is its index in SM_HOSTS. A report's replacement number is always 0.
    """

    @property
    def heartbeat_seconds(self) -> float:
        """The interval of reports. After three intervals without a report, a node's ranks are Unknown."""
        ...

    def follow(self, source: LogSource, wake: Callable[[], None]) -> None:
        """Start to read these logs, and call `wake` after new reports. Each reconcile calls this.

        Reading ends when `is_over` is set and all lines are read.
        """
        ...

    def get_agents(self, job_uid: str, attempt: int) -> tuple[AgentFacts, ...]:
        """Return the newest report of each node, ordered by node; empty for another attempt."""
        ...

    def is_complete(self, job_uid: str, attempt: int) -> bool:
        """Whether the attempt is over and all of its lines have been read."""
        ...

    def forget(self, job_uid: str) -> None:
        """Stop reading the logs of a deleted job."""
        ...
