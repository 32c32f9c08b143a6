"""Limit the memory for the jobs of each namespace. Jobs beyond the limit have to wait.

kopf's thread and the main thread use this module.
"""

from __future__ import annotations

import re
import sys
import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from muster.api.document import JSON
from muster.api.field_problems import InvalidResource
from muster.collector.memory_shares import MemoryShares, Share
from muster.objects.kubernetes.job_source import MISSING_MEMORY, JobIdentity, read_identity
from muster.objects.kubernetes.kinds import Object
from muster.objects.kubernetes.object_parser import MISSING_PARTS, read_missing_parts

_MIB = 1024 * 1024

NAMESPACE_MIB = 96
"""The limit for one namespace: thousands of ordinary jobs, or eight of the largest."""

TOTAL_MIB = 256
"""The limit for all jobs. The whole operator stays below the 1 GiB that the chart requests."""

FLOOR_MIB = 2
"""The guaranteed minimum of each namespace: enough for dozens of ordinary jobs."""

STARTED_JOB_FACTOR = 2
"""The limits of started jobs are higher by this factor, so that all of them fit again after the operator restarts."""

JOB_BYTES = 16_000
"""The measured size of a job without its spec and status."""

VALUE_BYTES = 100
"""The measured size of one parsed value of a spec or status, in addition to its text."""

MAX_WAITING = 50_000
"""The maximum number of waiting jobs. kopf's next list reports the jobs beyond it again."""

MAX_WAITING_STATUS = 64 * 1024
"""The maximum length of a waiting job's status, in characters. muster writes no longer status."""

_ESCAPED = re.compile(r"\\u(?!00)")
"""A character beyond Latin-1 that the API server escapes, such as U+2028."""

_NO_ROOM = (
    f"muster has no room for this job: the jobs of one namespace may take {NAMESPACE_MIB} MiB of its memory, all jobs "
    f"{TOTAL_MIB} MiB. It runs when there is room: delete jobs that are over, and make large specs smaller"
)


@dataclass(frozen=True)
class _Waiting:
    identity: JobIdentity
    share: Share


def _shares() -> MemoryShares:
    return MemoryShares(per_namespace=NAMESPACE_MIB * _MIB, total=TOTAL_MIB * _MIB, floor=FLOOR_MIB * _MIB)


@dataclass
class JobMemory:
    """Records the jobs that are in memory, and those that wait for memory."""

    shares: MemoryShares = field(default_factory=_shares)
    _loaded: dict[str, JobIdentity] = field(default_factory=dict)
    _waiting: OrderedDict[str, _Waiting] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reserve(self, source: Object) -> Object:
        """Reserve memory for the job's object. Without enough memory, return it without spec and status."""
        identity, texts = read_identity(source), [source.get("spec"), source.get("status")]
        weight = JOB_BYTES + sum(_weight(text) for text in texts if isinstance(text, str))
        share = Share(identity.namespace, weight)
        has_started = isinstance(texts[1], str) and '"startTime":' in texts[1]
        with self._lock:
            if self.shares.reserve(identity.uid, share, STARTED_JOB_FACTOR if has_started else 1):
                self._loaded[identity.uid] = identity
                self._waiting.pop(identity.uid, None)
                return source
            self._loaded.pop(identity.uid, None)
            self._waiting[identity.uid] = _Waiting(identity, share)
            if len(self._waiting) > MAX_WAITING:
                self._waiting.popitem(last=False)
        return _without_spec(source)

    def release_spec(self, identity: JobIdentity, error: InvalidResource) -> None:
        """Reserve less memory: of a refused spec, only the error messages are kept."""
        message_bytes = sum(
            map(
                sys.getsizeof,
                (str(error), *(text for problem in error.problems for text in (problem.path, problem.message))),
            )
        )
        with self._lock:
            if identity.uid in self._loaded:
                self.shares.reserve(
                    identity.uid, Share(identity.namespace, JOB_BYTES + message_bytes), STARTED_JOB_FACTOR
                )

    def forget(self, uid: str) -> None:
        """Release the memory of a deleted job."""
        with self._lock:
            self._loaded.pop(uid, None)
            self._waiting.pop(uid, None)
            self.shares.release(uid)

    def loaded_jobs(self) -> tuple[JobIdentity, ...]:
        """Return all jobs in memory."""
        with self._lock:
            return tuple(self._loaded.values())

    def waiting_jobs(self) -> tuple[JobIdentity, ...]:
        """Return all jobs that wait for memory."""
        with self._lock:
            return tuple(waiting.identity for waiting in self._waiting.values())

    def waiting_jobs_that_fit(self, most: int) -> tuple[JobIdentity, ...]:
        """Return at most `most` waiting jobs, each of which would fit now if it were loaded alone."""
        with self._lock:
            fit = (waiting.identity for waiting in self._waiting.values() if self.shares.fits(waiting.share))
            return tuple(identity for identity, _ in zip(fit, range(most), strict=False))


def _without_spec(source: Object) -> Object:
    """Remove the spec of a waiting job. Its status stays, because the next status is computed from it."""
    missing: dict[str, JSON] = {**read_missing_parts(source), MISSING_MEMORY: _NO_ROOM}
    status = source.get("status")
    if isinstance(status, str) and len(status) > MAX_WAITING_STATUS:
        missing["status"] = (
            f"it has {len(status)} characters; for a waiting job, muster reads at most {MAX_WAITING_STATUS}"
        )
        status = "{}"
    return {**source, "spec": "{}", "status": status, MISSING_PARTS: missing}


def _weight(text: str) -> int:
    # With one character beyond Latin-1, Python stores every character in two or four bytes.
    size = sys.getsizeof(text)
    if text.isascii() and _ESCAPED.search(text) is not None:
        size *= 2
    return size + VALUE_BYTES * (text.count(",") + text.count("{") + text.count("["))
