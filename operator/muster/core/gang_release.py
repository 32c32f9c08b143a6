"""Delete the pods of a gang that can't be scheduled completely, wait, and create them again.

Otherwise two jobs that each hold half of the Kubernetes nodes would wait for each other forever. The status records
each release with the first replacement number after it, so that a new leader can continue.
"""

import hashlib
from dataclasses import dataclass

from muster.api.spec.job import Job
from muster.api.status.status import Placement, Status
from muster.api.timestamps import parse_untrusted_timestamp
from muster.core.facts import JobFacts, NodeFacts, ProcessState
from muster.core.failure.problems import QUOTA_EXCEEDED, UNSCHEDULABLE

GANG_RELEASED = "GangReleased"

FIRST_BACKOFF_SECONDS = 30.0
MAX_BACKOFF_SECONDS = 600.0
"""The shortest and the longest wait between a release and the next attempt to schedule the gang, before jitter."""

_MAX_DOUBLINGS = 10
_HASH_BYTES = 8


@dataclass(frozen=True)
class GangRelease:
    """The latest release of the gang. `count` is its number, `at` its time, and pods are created again at `until`.

    Times are in Unix seconds. Pods with a lower replacement number than `replacement` belong to the released gang.
    `is_in_progress` is set while such pods exist or `until` is in the future.
    """

    count: int
    replacement: int
    at: float
    until: float
    is_in_progress: bool

    def includes(self, node: NodeFacts) -> bool:
        """Whether the node's pod belongs to the released gang."""
        return _is_older(node, self.replacement)


def find_release(job: Job, previous: Status, facts: JobFacts, waiting_since: float, now: float) -> GangRelease | None:
    """Return the gang's latest release, which may begin at `now` (Unix seconds); None if there was none."""
    last = _read_previous_release(job, previous.placement, facts, now)
    # Complete the current release first.
    if last is not None and last.is_in_progress:
        return last
    at = find_next_release_time(job, facts, waiting_since)
    if at is None or now < at:
        return last
    return _begin_release(job, facts, last, now)


def find_next_release_time(job: Job, facts: JobFacts, waiting_since: float) -> float | None:
    """Return when to release the gang if nothing changes; None if muster need not release it.

    A gang without unschedulable pods, without scheduled pods, or with a queue is never released.
    """
    # A queue's scheduler places a gang all or nothing. Of an elastic job it places only minNodes in this way.
    elastic = job.spec.elastic
    if job.spec.queue is not None and (elastic is None or elastic.min_nodes >= len(facts.nodes)):
        return None
    problems = (node.process.problem for node in facts.nodes if not node.is_scheduled)
    if not any(problem is not None and problem.reason in (UNSCHEDULABLE, QUOTA_EXCEEDED) for problem in problems):
        return None
    placed = [
        node.process.scheduled_at for node in facts.nodes if node.is_scheduled and not node.process.is_terminating
    ]
    first = min((at for at in placed if at is not None), default=None)
    # Pods that a restart keeps were scheduled for an earlier attempt.
    return None if first is None else max(first, waiting_since) + job.spec.startup_timeout_seconds


def compute_release_backoff(job_uid: str, count: int) -> float:
    """Return the wait in seconds after release number `count`: exponential, with a jitter that differs between jobs."""
    longest = min(MAX_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2.0 ** min(count - 1, _MAX_DOUBLINGS))
    digest = hashlib.sha256(f"{job_uid}/{count}".encode()).digest()
    share = int.from_bytes(digest[:_HASH_BYTES], "big") / 2.0 ** (8 * _HASH_BYTES)
    return longest * (0.5 + share)


def _begin_release(job: Job, facts: JobFacts, last: GangRelease | None, now: float) -> GangRelease:
    count = 1 if last is None else last.count + 1
    lowest = 0 if last is None else last.replacement
    replacement = max(lowest, *(node.process.replacement + 1 for node in facts.all_nodes))
    at = float(int(now))  # the status stores whole seconds
    until = at + compute_release_backoff(job.metadata.uid, count)
    return GangRelease(count, replacement, at, until, is_in_progress=True)


def _read_previous_release(job: Job, placement: Placement | None, facts: JobFacts, now: float) -> GangRelease | None:
    if placement is None:
        return None
    at = parse_untrusted_timestamp(placement.released_at)
    until = at + compute_release_backoff(job.metadata.uid, placement.releases)
    is_in_progress = now < until or any(_is_older(node, placement.replacement) for node in facts.all_nodes)
    return GangRelease(placement.releases, placement.replacement, at, until, is_in_progress)


def _is_older(node: NodeFacts, replacement: int) -> bool:
    """Whether the node has a pod with a lower replacement number."""
    return node.process.state is not ProcessState.MISSING and node.process.replacement < replacement
