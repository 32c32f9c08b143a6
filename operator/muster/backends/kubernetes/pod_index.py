"""All pods of all jobs, as the pod informer tells of them: the newest of each node, and who a token belongs to.

Belongs to one event loop and is used from it alone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from muster.backends.kubernetes.pod_facts import process_facts
from muster.backends.kubernetes.pods import PodView, read_pod
from muster.backends.kubernetes.sightings import Sightings, look
from muster.backends.kubernetes.warnings import Warned, read_warning
from muster.kube.answers import mapping, string
from muster.kube.client import Change
from muster.kube.kinds import Object
from muster.plan.facts import ProcessFacts
from muster.ranks.directory import Member

MAX_WARNED_PODS = 10_000
"""Pods whose warnings are kept, newest first: those of the largest job."""

MAX_WARNINGS = 4
"""Warnings kept of one pod: a mount fails for one volume at a time."""


@dataclass(frozen=True)
class Known:
    """A pod, when what of it was seen, and what was warned of about it.

    `untold_since` is set while the informer hasn't told of it: it is known from the answer that created it (Unix s).
    """

    pod: PodView
    seen: Sightings
    warnings: tuple[Warned, ...] = ()
    untold_since: float | None = None

    @cached_property
    def process(self) -> ProcessFacts:
        """The pod as its node's process: worked out once for every change of it."""
        return process_facts(self.pod, self.warnings, self.seen)


@dataclass
class _Entry:
    """A job's pods by node and generation; the highest generation and the last pod that was seen of each node."""

    pods: dict[int, dict[int, Known]] = field(default_factory=dict)
    highest: dict[int, int] = field(default_factory=dict)
    last: dict[int, Known] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)

    def all(self) -> Iterator[Known]:
        for generations in self.pods.values():
            yield from generations.values()

    def newest(self, node: int) -> Known | None:
        generations = self.pods.get(node)
        return generations[max(generations)] if generations else None


_Key = tuple[str, str]
"""Namespace and job uid: an owner of another namespace isn't one, whatever a pod says."""


@dataclass
class PodIndex:
    """`on_change` is called with the job's uid whenever something about one of its pods changed.

    `clock` gives Unix seconds: when something was seen.
    """

    on_change: Callable[[str], None]
    clock: Callable[[], float]
    _entries: dict[_Key, _Entry] = field(default_factory=dict)
    _places: dict[str, tuple[_Key, int, int]] = field(default_factory=dict)
    _namespaces: dict[str, str] = field(default_factory=dict)
    _warnings: OrderedDict[str, tuple[Warned, ...]] = field(default_factory=OrderedDict)

    def expect(self, job_uid: str, namespace: str) -> None:
        """A job of this uid is there, in this namespace. Its pods are found from now on."""
        self._namespaces[job_uid] = namespace

    def forget(self, job_uid: str) -> None:
        """The job is gone: so are its pods, for everybody who asks."""
        self._namespaces.pop(job_uid, None)
        for key in [key for key in self._entries if key[1] == job_uid]:
            for known in self._entries.pop(key).all():
                self._places.pop(known.pod.uid, None)

    def take(self, change: Change) -> None:
        """Hear of a change of a pod."""
        read = read_pod(change.object)
        pod = read or self._released(change.object)
        if pod is None or change.type == "BOOKMARK":
            return
        if change.type == "DELETED" or read is None:
            self._drop(pod)
        else:
            self._put(pod)
        self.on_change(pod.job_uid)

    def adopt(self, pod: PodView, at: float) -> None:
        """Know of a pod, as it was answered at `at` (Unix s), before the informer tells. What it told already stays."""
        entry = self._entries.get((pod.namespace, pod.job_uid))
        if entry is not None and pod.uid in entry.gone:
            return
        place = self._places.get(pod.uid)
        if place is None or self._entries[place[0]].pods[place[1]][place[2]].untold_since is not None:
            self._put(pod, at)

    def lost(self, pod: PodView) -> None:
        """A pod is gone that the informer never heard of, and so can't tell of its end."""
        if any(pod.uid == known.pod.uid for known in self.untold(pod.job_uid)):
            self._drop(pod)

    def untold(self, job_uid: str) -> tuple[Known, ...]:
        """The job's pods that the informer hasn't told of."""
        entry = self._entry(job_uid)
        return () if entry is None else tuple(known for known in entry.all() if known.untold_since is not None)

    def warn(self, change: Change) -> None:
        """Hear of an Event."""
        warned = None if change.type in ("DELETED", "BOOKMARK") else read_warning(change.object)
        if warned is None:
            return
        before = self._warnings.pop(warned.pod_uid, ())
        after = (*(one for one in before if one != warned), warned)[-MAX_WARNINGS:]
        self._warnings[warned.pod_uid] = after
        while len(self._warnings) > MAX_WARNED_PODS:
            self._warnings.popitem(last=False)
        place = self._places.get(warned.pod_uid)
        if place is not None and after != before:
            (key, node, generation) = place
            generations = self._entries[key].pods[node]
            known = generations[generation]
            generations[generation] = replace(known, warnings=after)
            self.on_change(key[1])

    def of(self, job_uid: str) -> tuple[Known, ...]:
        """All pods of the job, of every node and generation."""
        entry = self._entry(job_uid)
        return () if entry is None else tuple(entry.all())

    def newest(self, job_uid: str, node: int) -> Known | None:
        """The node's pod of the highest generation that is there."""
        entry = self._entry(job_uid)
        return None if entry is None else entry.newest(node)

    def last(self, job_uid: str, node: int) -> Known | None:
        """The newest pod that the node ever had, as it was last seen, gone or not."""
        entry = self._entry(job_uid)
        return None if entry is None else entry.newest(node) or entry.last.get(node)

    def highest(self, job_uid: str, node: int) -> int:
        """The highest generation that was seen of the node, pods that are gone included; -1 for none."""
        entry = self._entry(job_uid)
        return -1 if entry is None else entry.highest.get(node, -1)

    def strays(self, job_uid: str, nodes: int) -> tuple[Known, ...]:
        """The job's pods that are none of its `nodes` nodes: beyond them, or replaced."""
        entry = self._entry(job_uid)
        if entry is None:
            return ()
        wanted = {known.pod.uid for node in range(nodes) if (known := entry.newest(node)) is not None}
        return tuple(known for known in entry.all() if known.pod.uid not in wanted)

    def find(self, pod_uid: str) -> Member | None:
        """The place of a pod that is its node's newest and is still there; None for any other."""
        place = self._places.get(pod_uid)
        if place is None:
            return None
        (namespace, job_uid), node, generation = place
        if self._namespaces.get(job_uid) != namespace:
            return None
        newest = self._entries[namespace, job_uid].newest(node)
        return Member(job_uid, node, generation) if newest is not None and newest.pod.uid == pod_uid else None

    def _released(self, source: Object) -> PodView | None:
        """A pod, as it was last seen, that was a job's and is no more: somebody took its owner away."""
        place = self._places.get(string(mapping(source.get("metadata")).get("uid")))
        if place is None:
            return None
        key, node, generation = place
        return self._entries[key].pods[node][generation].pod

    def _entry(self, job_uid: str) -> _Entry | None:
        return self._entries.get((self._namespaces.get(job_uid, ""), job_uid))

    def _put(self, pod: PodView, untold_since: float | None = None) -> None:
        key = (pod.namespace, pod.job_uid)
        entry = self._entries.setdefault(key, _Entry())
        generations = entry.pods.setdefault(pod.node, {})
        before = generations.get(pod.generation)
        # Another pod of the same name: the end of the first was missed.
        if before is not None and before.pod.uid != pod.uid:
            self._drop(before.pod)
            generations = entry.pods.setdefault(pod.node, {})
        seen = look(pod, None if before is None or before.pod.uid != pod.uid else before.seen, self.clock())
        generations[pod.generation] = Known(pod, seen, self._warnings.get(pod.uid, ()), untold_since)
        entry.highest[pod.node] = max(pod.generation, entry.highest.get(pod.node, -1))
        self._places[pod.uid] = (key, pod.node, pod.generation)

    def _drop(self, pod: PodView) -> None:
        self._warnings.pop(pod.uid, None)
        entry = self._entries.get((pod.namespace, pod.job_uid))
        place = self._places.pop(pod.uid, None)
        if entry is None or place is None:
            return
        _, node, generation = place
        generations = entry.pods[node]
        dropped = generations.pop(generation)
        if not generations:
            del entry.pods[node]
        entry.gone.add(pod.uid)
        # How it ended tells why it went; of a pod that went unseen the informer has nothing but whose it was.
        if generation == entry.highest.get(node):
            last = pod if pod.phase else dropped.pod
            entry.last[node] = Known(last, look(last, dropped.seen, self.clock()), dropped.warnings)
        # The garbage collector is done with a job that is gone.
        if not entry.pods and pod.job_uid not in self._namespaces:
            del self._entries[pod.namespace, pod.job_uid]
