"""Which jobs the operator holds, by the memory that those of a namespace take: further ones wait for room.

May be used from kopf's thread and from the main one.
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
from muster.objects.kubernetes.job_source import ROOM, JobIdentity, identity_of
from muster.objects.kubernetes.kinds import Object
from muster.objects.kubernetes.reading import LEFT_OUT, left_out

_MIB = 1024 * 1024

NAMESPACE_MIB = 96
"""For the jobs of one namespace: thousands of usual ones, eight of the worst."""

TOTAL_MIB = 256
"""For all jobs. With what else the operator needs it stays below the 1 GiB that the chart gives it."""

FLOOR_MIB = 2
"""What a namespace has however full the others are: dozens of usual jobs."""

STARTED_TIMES = 2
"""So many times the limits for jobs that have started: those that run find room when an operator begins, whichever
jobs it hears of first. For all of them were within the limits once."""

JOB_BYTES = 16_000
"""What a job takes without its spec and status: measured."""

VALUE_BYTES = 100
"""What a value of a spec or a status takes, parsed and in its typed form, besides its text: measured."""

MAX_WAITING = 50_000
"""Jobs that are known to wait. More are found again when kopf lists all of them the next time."""

MAX_WAITING_STATUS = 64 * 1024
"""Characters: muster itself writes no longer one."""

_ESCAPED = re.compile(r"\\u(?!00)")
"""A character beyond Latin-1 that the API server writes in ASCII: U+2028 is such a one."""

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
class JobRoom:
    """Knows which jobs are held, and which wait."""

    shares: MemoryShares = field(default_factory=_shares)
    _held: dict[str, JobIdentity] = field(default_factory=dict)
    _waiting: OrderedDict[str, _Waiting] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def place(self, source: Object) -> Object:
        """The job's object as it is held: without spec and status when there is no room for them."""
        identity, texts = identity_of(source), [source.get("spec"), source.get("status")]
        weight = JOB_BYTES + sum(_weight(text) for text in texts if isinstance(text, str))
        share = Share(identity.namespace, weight)
        has_started = isinstance(texts[1], str) and '"startTime":' in texts[1]
        with self._lock:
            if self.shares.take(identity.uid, share, STARTED_TIMES if has_started else 1):
                self._held[identity.uid] = identity
                self._waiting.pop(identity.uid, None)
                return source
            self._held.pop(identity.uid, None)
            self._waiting[identity.uid] = _Waiting(identity, share)
            if len(self._waiting) > MAX_WAITING:
                self._waiting.popitem(last=False)
        return _without_spec(source)

    def is_refused(self, identity: JobIdentity, why: InvalidResource) -> None:
        """Of the job's spec nothing is kept but what is quoted to say why."""
        words = sum(map(sys.getsizeof, (str(why), *(text for one in why.problems for text in (one.path, one.message)))))
        with self._lock:
            if identity.uid in self._held:
                self.shares.take(identity.uid, Share(identity.namespace, JOB_BYTES + words), STARTED_TIMES)

    def forget(self, uid: str) -> None:
        """The job is gone."""
        with self._lock:
            self._held.pop(uid, None)
            self._waiting.pop(uid, None)
            self.shares.give_back(uid)

    def held(self) -> tuple[JobIdentity, ...]:
        """All jobs that take memory."""
        with self._lock:
            return tuple(self._held.values())

    def that_fit(self, most: int) -> tuple[JobIdentity, ...]:
        """Jobs that wait and would find room now, each for itself; no more than `most`, those first that came first."""
        with self._lock:
            fit = (one.identity for one in self._waiting.values() if self.shares.fits(one.share))
            return tuple(identity for identity, _ in zip(fit, range(most), strict=False))


def _without_spec(source: Object) -> Object:
    """What the operator gets of a job that waits: its status stays, for what is written to that is made from it."""
    missing: dict[str, JSON] = {**left_out(source), ROOM: _NO_ROOM}
    status = source.get("status")
    if isinstance(status, str) and len(status) > MAX_WAITING_STATUS:
        missing["status"] = (
            f"found {len(status)} characters; of a job without room at most {MAX_WAITING_STATUS} are read"
        )
        status = "{}"
    return {**source, "spec": "{}", "status": status, LEFT_OUT: missing}


def _weight(text: str) -> int:
    # One character beyond Latin-1 makes Python keep all those beside it in two or four bytes each.
    size = sys.getsizeof(text)
    if text.isascii() and _ESCAPED.search(text) is not None:
        size *= 2
    return size + VALUE_BYTES * (text.count(",") + text.count("{") + text.count("["))
