"""All pods of all jobs, as the pod informer tells of them: the newest of each node, and who a token belongs to.

Belongs to one event loop and is used from it alone.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from muster.api.json_fields import mapping, string
from muster.backends.kubernetes.early_warnings import EarlyWarnings, with_warning
from muster.clients.kubernetes.client import Change
from muster.clients.kubernetes.skipped import SkippedLog
from muster.collector.directory import Member
from muster.collector.memory_shares import MemoryShares, Share
from muster.core.facts import ProcessFacts
from muster.diagnose.kubernetes.pod_facts import process_facts
from muster.objects.kubernetes.kinds import Object
from muster.objects.kubernetes.observations import Observations, look
from muster.objects.kubernetes.pods import PodView, read_pod
from muster.objects.kubernetes.warnings import Warned, read_warning

WARNING_BYTES = 400
"""What one takes without its text."""

MAX_GONE = 20_000
"""Pods of a job that are known to be gone, newest first: twice those of the largest job."""


@dataclass(frozen=True)
class PodEntry:
    """A pod, when what of it was seen, and what was warned of about it.

    `untold_since` is set while the informer hasn't told of it: it is known from the answer that created it (Unix s).
    """

    pod: PodView
    observations: Observations
    warnings: tuple[Warned, ...] = ()
    untold_since: float | None = None

    @property
    def share(self) -> Share:
        """What it takes of the memory that its namespace's pods have."""
        warnings = sum(WARNING_BYTES + 4 * len(one.message) for one in self.warnings)
        return Share(self.pod.namespace, self.pod.weight + warnings)

    @cached_property
    def process(self) -> ProcessFacts:
        """The pod as its node's process: worked out once for every change of it."""
        return process_facts(self.pod, self.warnings, self.observations)


@dataclass
class _Entry:
    """A job's pods by node and replacement; the highest replacement and the last pod that was seen of each node."""

    pods: dict[int, dict[int, PodEntry]] = field(default_factory=dict)
    highest: dict[int, int] = field(default_factory=dict)
    last: dict[int, PodEntry] = field(default_factory=dict)
    removed: OrderedDict[str, None] = field(default_factory=OrderedDict)

    def all(self) -> Iterator[PodEntry]:
        for replacements in self.pods.values():
            yield from replacements.values()

    def newest(self, node: int) -> PodEntry | None:
        replacements = self.pods.get(node)
        return replacements[max(replacements)] if replacements else None


_MIB = 1024 * 1024

_Key = tuple[str, str]
"""Namespace and job uid: an owner of another namespace isn't one, whatever a pod says."""


NO_ROOM = "the pods of its namespace's jobs take all the memory that muster has for them"


def _pod_shares() -> MemoryShares:
    return MemoryShares(per_namespace=96 * _MIB, total=256 * _MIB, floor=_MIB)


@dataclass
class PodIndex:
    """`on_change` is called with the job's uid whenever something about one of its pods changed.

    A pod for which its namespace has no room in `shares` is not there, and logged. `clock` gives Unix seconds: when
    something was seen.
    """

    on_change: Callable[[str], None]
    clock: Callable[[], float]
    shares: MemoryShares = field(default_factory=_pod_shares)
    _entries: dict[_Key, _Entry] = field(default_factory=dict)
    _places: dict[str, tuple[_Key, int, int]] = field(default_factory=dict)
    _namespaces: dict[str, str] = field(default_factory=dict)
    _early: EarlyWarnings = field(default_factory=EarlyWarnings)
    _skipped: SkippedLog = field(default_factory=lambda: SkippedLog(time.monotonic))

    def expect(self, job_uid: str, namespace: str) -> None:
        """A job of this uid is there, in this namespace. Its pods are found from now on."""
        self._namespaces[job_uid] = namespace

    def forget(self, job_uid: str) -> None:
        """The job is gone: so are its pods, for everybody who asks."""
        self._namespaces.pop(job_uid, None)
        for key in [key for key in self._entries if key[1] == job_uid]:
            entry = self._entries.pop(key)
            for node in entry.last:
                self.shares.give_back(_last(job_uid, node))
            for known in entry.all():
                self._places.pop(known.pod.uid, None)
                self.shares.give_back(known.pod.uid)

    def take(self, change: Change) -> None:
        """Hear of a change of a pod."""
        read = read_pod(change.object)
        pod = read or self._released(change.object)
        if pod is None or change.type == "BOOKMARK":
            return
        if change.type == "DELETED" or read is None:
            self._drop(pod)
        else:
            self._store(pod)
        self.on_change(pod.job_uid)

    def adopt(self, pod: PodView, at: float) -> None:
        """Know of a pod, as it was answered at `at` (Unix s), before the informer tells. What it told already stays."""
        entry = self._entries.get((pod.namespace, pod.job_uid))
        if entry is not None and pod.uid in entry.removed:
            return
        place = self._places.get(pod.uid)
        if place is None or self._entries[place[0]].pods[place[1]][place[2]].untold_since is not None:
            self._store(pod, at)

    def lost(self, pod: PodView) -> None:
        """A pod is gone that the informer never heard of, and so can't tell of its end."""
        if any(pod.uid == known.pod.uid for known in self.untold(pod.job_uid)):
            self._drop(pod)

    def untold(self, job_uid: str) -> tuple[PodEntry, ...]:
        """The job's pods that the informer hasn't told of."""
        entry = self._entry(job_uid)
        return () if entry is None else tuple(known for known in entry.all() if known.untold_since is not None)

    def warn(self, change: Change) -> None:
        """Hear of an Event."""
        warned = None if change.type in ("DELETED", "BOOKMARK") else read_warning(change.object)
        if warned is None:
            return
        place = self._places.get(warned.pod_uid)
        if place is None:
            self._early.add(warned)
            return
        key, node, replacement = place
        replacements = self._entries[key].pods[node]
        entry = replacements[replacement]
        after = replace(entry, warnings=with_warning(entry.warnings, warned))
        if key[0] == warned.namespace and after != entry and self.shares.take(entry.pod.uid, after.share):
            replacements[replacement] = after
            self.on_change(key[1])

    def of(self, job_uid: str) -> tuple[PodEntry, ...]:
        """All pods of the job, of every node and replacement."""
        entry = self._entry(job_uid)
        return () if entry is None else tuple(entry.all())

    def newest(self, job_uid: str, node: int) -> PodEntry | None:
        """The node's pod of the highest replacement that is there."""
        entry = self._entry(job_uid)
        return None if entry is None else entry.newest(node)

    def last(self, job_uid: str, node: int) -> PodEntry | None:
        """The newest pod that the node ever had, as it was last seen, gone or not."""
        entry = self._entry(job_uid)
        return None if entry is None else entry.newest(node) or entry.last.get(node)

    def highest(self, job_uid: str, node: int) -> int:
        """The highest replacement that was seen of the node, pods that are gone included; -1 for none."""
        entry = self._entry(job_uid)
        return -1 if entry is None else entry.highest.get(node, -1)

    def strays(self, job_uid: str, nodes: int) -> tuple[PodEntry, ...]:
        """The job's pods that are none of its `nodes` nodes: beyond them, or replaced."""
        entry = self._entry(job_uid)
        if entry is None:
            return ()
        wanted = {current.pod.uid for node in range(nodes) if (current := entry.newest(node)) is not None}
        return tuple(current for current in entry.all() if current.pod.uid not in wanted)

    def find(self, pod_uid: str) -> Member | None:
        """The place of a pod that is its node's newest and is still there; None for any other."""
        place = self._places.get(pod_uid)
        if place is None:
            return None
        (namespace, job_uid), node, replacement = place
        if self._namespaces.get(job_uid) != namespace:
            return None
        newest = self._entries[namespace, job_uid].newest(node)
        return Member(job_uid, node, replacement) if newest is not None and newest.pod.uid == pod_uid else None

    def _released(self, source: Object) -> PodView | None:
        """A pod, as it was last seen, that was a job's until its owner reference was removed."""
        place = self._places.get(string(mapping(source.get("metadata")).get("uid")))
        if place is None:
            return None
        key, node, replacement = place
        return self._entries[key].pods[node][replacement].pod

    def _entry(self, job_uid: str) -> _Entry | None:
        return self._entries.get((self._namespaces.get(job_uid, ""), job_uid))

    def _store(self, pod: PodView, untold_since: float | None = None) -> None:
        key = (pod.namespace, pod.job_uid)
        place = self._places.get(pod.uid)
        former = None if place is None else self._entries[place[0]].pods[place[1]][place[2]]
        observations = look(pod, None if former is None else former.observations, self.clock())
        pod_entry = PodEntry(
            pod,
            observations,
            self._early.pop(pod.namespace, pod.uid) if former is None else former.warnings,
            untold_since,
        )
        if not self.shares.take(pod.uid, pod_entry.share):
            self._skipped.tell(f"Pod {pod.namespace}/{pod.name}", pod.uid, NO_ROOM)
            self._drop(pod)
            return
        entry = self._entries.setdefault(key, _Entry())
        before = entry.pods.get(pod.node, {}).get(pod.replacement)
        # Another pod of the same name: the end of the first was missed.
        if before is not None and before.pod.uid != pod.uid:
            self._drop(before.pod)
        # That may have been all that was known of the job.
        entry = self._entries.setdefault(key, entry)
        entry.pods.setdefault(pod.node, {})[pod.replacement] = pod_entry
        entry.highest[pod.node] = max(pod.replacement, entry.highest.get(pod.node, -1))
        self._places[pod.uid] = (key, pod.node, pod.replacement)

    def _drop(self, pod: PodView) -> None:
        self.shares.give_back(pod.uid)
        self._early.pop(pod.namespace, pod.uid)
        entry = self._entries.get((pod.namespace, pod.job_uid))
        place = self._places.pop(pod.uid, None)
        if entry is None or place is None:
            return
        _, node, replacement = place
        replacements = entry.pods[node]
        dropped = replacements.pop(replacement)
        if not replacements:
            del entry.pods[node]
        entry.removed[pod.uid] = None
        if len(entry.removed) > MAX_GONE:
            entry.removed.popitem(last=False)
        # How it ended tells why it went; of a pod that went unseen the informer has nothing but whose it was.
        pod = pod if pod.phase else dropped.pod
        last = PodEntry(pod, look(pod, dropped.observations, self.clock()), dropped.warnings)
        if replacement == entry.highest.get(node) and self.shares.take(_last(pod.job_uid, node), last.share):
            entry.last[node] = last
        # The garbage collector is done with a job that is gone.
        if not entry.pods and pod.job_uid not in self._namespaces:
            for of_node in entry.last:
                self.shares.give_back(_last(pod.job_uid, of_node))
            del self._entries[pod.namespace, pod.job_uid]


def _last(job_uid: str, node: int) -> str:
    """Under which the last pod of a node that has none any more takes its share."""
    return f"{job_uid} {node}"
