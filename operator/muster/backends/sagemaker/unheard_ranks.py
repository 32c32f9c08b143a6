"""Ranks of which nothing is read."""

from __future__ import annotations

from collections.abc import Callable

from muster.backends.sagemaker.rank_news import LogSource
from muster.plan.facts import AgentFacts


class UnheardRanks:
    """News of no ranks."""

    heartbeat_seconds = 60.0

    def follow(self, source: LogSource, wake: Callable[[], None]) -> None:
        """Nothing is read."""

    def agents(self, job_uid: str, attempt: int) -> tuple[AgentFacts, ...]:  # noqa: ARG002 - of none
        """None."""
        return ()

    def is_complete(self, job_uid: str, attempt: int) -> bool:  # noqa: ARG002 - of none
        """Nothing is to come."""
        return True

    def forget(self, job_uid: str) -> None:
        """Nothing was remembered."""
