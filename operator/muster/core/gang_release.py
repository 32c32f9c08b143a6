"""A gang that can't be placed whole gives up what it holds, waits, and is made again. Pure.

Two jobs that hold half of the machines each would wait for each other for ever. That it was given up stands in the
status, with the replacement from which on pods count again: who takes over goes on from there.
"""

import hashlib
from dataclasses import dataclass

from muster.api.spec.job import Job
from muster.api.status.status import Placement, Status
from muster.api.timestamps import from_text
from muster.core.facts import JobFacts, NodeFacts, ProcessState
from muster.core.failure.problems import QUOTA_EXCEEDED, UNSCHEDULABLE

GANG_RELEASED = "GangReleased"

FIRST_BACKOFF_SECONDS = 30.0
MAX_BACKOFF_SECONDS = 600.0
"""Between giving up and trying again, before the jitter: from the first time to the longest."""

_MAX_DOUBLINGS = 10
_HASH_BYTES = 8


@dataclass(frozen=True)
class GangRelease:
    """The last time that the gang was given up: the `count`th, at `at` (Unix seconds), tried again at `until`.

    Pods of a lower replacement than `replacement` are of the gang that was given up.
    """

    count: int
    replacement: int
    at: float
    until: float

    def gives_up(self, node: NodeFacts) -> bool:
        """Whether the node's pod is one of the gang that was given up."""
        return node.process.state is not ProcessState.MISSING and node.process.replacement < self.replacement

    def is_under_way(self, facts: JobFacts, now: float) -> bool:
        """Whether the gang is given up right now: pods of it are still there, or the pause isn't over."""
        return now < self.until or any(self.gives_up(node) for node in facts.nodes)


def release_of(job: Job, previous: Status, facts: JobFacts, now: float) -> GangRelease | None:
    """The gang's last release, which may be due right now (Unix seconds); None when there was none."""
    last = _previous_release(job, previous.placement)
    # One that is under way comes to its end first.
    if last is not None and last.is_under_way(facts, now):
        return last
    at = release_at(job, facts)
    if at is None or now < at:
        return last
    return _next(job, facts, last, now)


def release_at(job: Job, facts: JobFacts) -> float | None:
    """When the gang is given up if nothing changes; None while it can be placed, holds nothing, or others see to it."""
    # A queue's scheduler places all or none; if it does otherwise it has its reasons.
    if job.spec.queue is not None:
        return None
    problems = (node.process.problem for node in facts.nodes if not node.is_placed)
    if not any(problem is not None and problem.reason in (UNSCHEDULABLE, QUOTA_EXCEEDED) for problem in problems):
        return None
    placed = [node.process.scheduled_at for node in facts.nodes if node.is_placed and not node.process.is_leaving]
    first = min((at for at in placed if at is not None), default=None)
    return None if first is None else first + job.spec.startup_timeout_seconds


def backoff_seconds(job_uid: str, count: int) -> float:
    """How long to wait after the `count`th release: longer each time, and not as long as any other job."""
    longest = min(MAX_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2.0 ** min(count - 1, _MAX_DOUBLINGS))
    digest = hashlib.sha256(f"{job_uid}/{count}".encode()).digest()
    share = int.from_bytes(digest[:_HASH_BYTES], "big") / 2.0 ** (8 * _HASH_BYTES)
    return longest * (0.5 + share)


def _next(job: Job, facts: JobFacts, last: GangRelease | None, now: float) -> GangRelease:
    count = 1 if last is None else last.count + 1
    lowest = 0 if last is None else last.replacement
    replacement = max(lowest, *(node.process.replacement + 1 for node in facts.nodes))
    at = float(int(now))  # as the status tells it
    return GangRelease(count, replacement, at, at + backoff_seconds(job.metadata.uid, count))


def _previous_release(job: Job, placement: Placement | None) -> GangRelease | None:
    if placement is None:
        return None
    try:
        at = from_text(placement.released_at)
    except ValueError:
        at = 0.0  # not a time of muster's: treat it as long past
    until = at + backoff_seconds(job.metadata.uid, placement.releases)
    return GangRelease(placement.releases, placement.replacement, at, until)
