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
from muster.collector.memory_limits import MemoryLimits, ObjectSize
from muster.objects.kubernetes.job_source import MISSING_MEMORY, JobIdentity, read_identity
from muster.objects.kubernetes.kinds import Object
from muster.objects.kubernetes.object_parser import MISSING_PARTS, read_missing_parts

_MIB = 1024 * 1024

NAMESPACE_MIB = 96
"""The limit for one namespace: thousands of ordinary jobs, or eight of the largest."""

TOTAL_MIB = 256
"""The limit for all jobs. The whole operator stays below the 1 GiB that the chart requests."""

GUARANTEED_MIB = 2
"""Each namespace may use at least this much: enough for dozens of ordinary jobs."""

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
"""A character outside Latin-1 that the API server escapes, such as U+2028."""

_NO_MEMORY = (
    f"the operator has no memory for this job: the jobs of one namespace may use {NAMESPACE_MIB} MiB, all jobs "
    f"{TOTAL_MIB} MiB. The job runs when memory is free: delete finished jobs, or make large specs smaller"
)


@dataclass(frozen=True)
class _WaitingJob:
    identity: JobIdentity
    size: ObjectSize


def _make_limits() -> MemoryLimits:
    return MemoryLimits(per_namespace=NAMESPACE_MIB * _MIB, total=TOTAL_MIB * _MIB, guaranteed=GUARANTEED_MIB * _MIB)


@dataclass
class JobMemory:
    """Records the jobs that are in memory, and those that wait for memory."""

    limits: MemoryLimits = field(default_factory=_make_limits)
    _loaded_jobs: dict[str, JobIdentity] = field(default_factory=dict)
    _waiting_jobs: OrderedDict[str, _WaitingJob] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reserve(self, source: Object) -> Object:
        """Reserve memory for the job's object. Without enough memory, return it without spec and status."""
        identity, texts = read_identity(source), [source.get("spec"), source.get("status")]
        job_bytes = JOB_BYTES + sum(_estimate_bytes(text) for text in texts if isinstance(text, str))
        size = ObjectSize(identity.namespace, job_bytes)
        has_started = isinstance(texts[1], str) and '"startTime":' in texts[1]
        with self._lock:
            if self.limits.reserve(identity.uid, size, STARTED_JOB_FACTOR if has_started else 1):
                self._loaded_jobs[identity.uid] = identity
                self._waiting_jobs.pop(identity.uid, None)
                return source
            self._loaded_jobs.pop(identity.uid, None)
            self._waiting_jobs[identity.uid] = _WaitingJob(identity, size)
            if len(self._waiting_jobs) > MAX_WAITING:
                self._waiting_jobs.popitem(last=False)
        return _remove_spec(source)

    def release_spec(self, identity: JobIdentity, error: InvalidResource) -> None:
        """Reserve less memory: muster keeps only the error messages of a refused spec."""
        message_bytes = sum(
            map(
                sys.getsizeof,
                (str(error), *(text for problem in error.problems for text in (problem.path, problem.message))),
            )
        )
        with self._lock:
            if identity.uid in self._loaded_jobs:
                self.limits.reserve(
                    identity.uid, ObjectSize(identity.namespace, JOB_BYTES + message_bytes), STARTED_JOB_FACTOR
                )

    def forget(self, uid: str) -> None:
        """Release the memory of a deleted job."""
        with self._lock:
            self._loaded_jobs.pop(uid, None)
            self._waiting_jobs.pop(uid, None)
            self.limits.release(uid)

    def get_loaded_jobs(self) -> tuple[JobIdentity, ...]:
        """Return all jobs in memory."""
        with self._lock:
            return tuple(self._loaded_jobs.values())

    def get_waiting_jobs(self) -> tuple[JobIdentity, ...]:
        """Return all jobs that wait for memory."""
        with self._lock:
            return tuple(waiting_job.identity for waiting_job in self._waiting_jobs.values())

    def find_jobs_that_fit(self, max_jobs: int) -> tuple[JobIdentity, ...]:
        """Return at most `max_jobs` waiting jobs. Each of them fits, but possibly not all together."""
        with self._lock:
            fit = (
                waiting_job.identity
                for waiting_job in self._waiting_jobs.values()
                if self.limits.fits(waiting_job.size)
            )
            return tuple(identity for identity, _ in zip(fit, range(max_jobs), strict=False))


def _remove_spec(source: Object) -> Object:
    """Remove the spec of a waiting job. Keep its status, because the next status is computed from it."""
    missing: dict[str, JSON] = {**read_missing_parts(source), MISSING_MEMORY: _NO_MEMORY}
    status = source.get("status")
    if isinstance(status, str) and len(status) > MAX_WAITING_STATUS:
        missing["status"] = (
            f"it has {len(status)} characters; for a waiting job, muster reads at most {MAX_WAITING_STATUS}"
        )
        status = "{}"
    return {**source, "spec": "{}", "status": status, MISSING_PARTS: missing}


def _estimate_bytes(text: str) -> int:
    # With one character outside Latin-1, Python stores every character in two or four bytes.
    size = sys.getsizeof(text)
    if text.isascii() and _ESCAPED.search(text) is not None:
        size *= 2
    return size + VALUE_BYTES * (text.count(",") + text.count("{") + text.count("["))
