"""Index the pods of all jobs, which the informer reports: by job, node and replacement number, and by uid for tokens.

Only one event loop may use it.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from muster.api.json_fields import read_mapping, read_string
from muster.backends.kubernetes.pending_warnings import PendingWarnings, append_warning
from muster.clients.kubernetes.client import Change
from muster.clients.kubernetes.skipped import SkippedLog
from muster.collector.memory_limits import MemoryLimits, ObjectSize
from muster.collector.pod_directory import PodIdentity
from muster.core.facts import ProcessFacts
from muster.diagnose.kubernetes.pod_facts import derive_process_facts
from muster.objects.kubernetes.kinds import Object
from muster.objects.kubernetes.observations import Observations, observe_pod
from muster.objects.kubernetes.pods import PodView, read_pod
from muster.objects.kubernetes.warnings import PodWarning, read_warning

WARNING_BYTES = 400
"""The size of a warning without its text."""

MAX_DELETED_PODS = 20_000
"""The maximum number of deleted pods of a job in memory: twice the pods of the largest job."""


@dataclass(frozen=True)
class PodEntry:
    """A pod, the times of its observations, and the warnings about it.

    `unconfirmed_since` is set (Unix seconds) while muster knows the pod only from the response that created it.
    """

    pod: PodView
    observations: Observations
    warnings: tuple[PodWarning, ...] = ()
    unconfirmed_since: float | None = None

    @property
    def memory_size(self) -> ObjectSize:
        """The memory that the pod takes, for its namespace's limit."""
        warnings = sum(WARNING_BYTES + 4 * len(warning.message) for warning in self.warnings)
        return ObjectSize(self.pod.namespace, self.pod.memory_bytes + warnings)

    @cached_property
    def process(self) -> ProcessFacts:
        """The pod as its node's process; cached until the entry changes."""
        return derive_process_facts(self.pod, self.warnings, self.observations)


@dataclass
class _JobPods:
    """A job's pods by node and replacement number.

    `highest_numbers` are the nodes' highest replacement numbers, `last_pods` their last pods if these are deleted.
    """

    pods: dict[int, dict[int, PodEntry]] = field(default_factory=dict)
    highest_numbers: dict[int, int] = field(default_factory=dict)
    last_pods: dict[int, PodEntry] = field(default_factory=dict)
    removed_uids: OrderedDict[str, None] = field(default_factory=OrderedDict)

    def list_all(self) -> Iterator[PodEntry]:
        for replacements in self.pods.values():
            yield from replacements.values()

    def get_newest(self, node: int) -> PodEntry | None:
        replacements = self.pods.get(node)
        return replacements[max(replacements)] if replacements else None


_MIB = 1024 * 1024

_Key = tuple[str, str]
"""The namespace and the job's uid: an owner reference is only valid within a namespace."""


MEMORY_EXHAUSTED = "the pods of this namespace's jobs use all the memory that muster has for them"


def _make_memory_limits() -> MemoryLimits:
    return MemoryLimits(per_namespace=96 * _MIB, total=256 * _MIB, guaranteed=_MIB)


@dataclass
class PodIndex:
    """The pods of all jobs. It calls `on_change` with the job's uid whenever one of its pods changes.

    A pod in another namespace never belongs to the job, even if its owner reference names the job. The index logs and
    ignores a pod for which its namespace has no memory left. `clock` returns Unix seconds.
    """

    on_change: Callable[[str], None]
    clock: Callable[[], float]
    memory_limits: MemoryLimits = field(default_factory=_make_memory_limits)
    _entries: dict[_Key, _JobPods] = field(default_factory=dict)
    _positions: dict[str, tuple[_Key, int, int]] = field(default_factory=dict)
    _namespaces: dict[str, str] = field(default_factory=dict)
    _pending_warnings: PendingWarnings = field(default_factory=PendingWarnings)
    _skipped_log: SkippedLog = field(default_factory=lambda: SkippedLog(time.monotonic))

    def expect(self, job_uid: str, namespace: str) -> None:
        """Register a job, so that the index returns its pods."""
        self._namespaces[job_uid] = namespace

    def forget(self, job_uid: str) -> None:
        """Remove a deleted job and its pods."""
        self._namespaces.pop(job_uid, None)
        for key in [key for key in self._entries if key[1] == job_uid]:
            entry = self._entries.pop(key)
            for node in entry.last_pods:
                self.memory_limits.release(_make_last_pod_key(job_uid, node))
            for pod_entry in entry.list_all():
                self._positions.pop(pod_entry.pod.uid, None)
                self.memory_limits.release(pod_entry.pod.uid)

    def handle_change(self, change: Change) -> None:
        """Handle a pod's change."""
        read = read_pod(change.object)
        pod = read or self._find_last_observed_pod(change.object)
        if pod is None or change.type == "BOOKMARK":
            return
        if change.type == "DELETED" or read is None:
            self._drop(pod)
        else:
            self._store(pod)
        self._announce(pod.namespace, pod.job_uid)

    def add_created(self, pod: PodView, at: float) -> None:
        """Add a pod from the response at `at` (Unix seconds), unless the informer has already reported it."""
        entry = self._entries.get((pod.namespace, pod.job_uid))
        if entry is not None and pod.uid in entry.removed_uids:
            return
        place = self._positions.get(pod.uid)
        if place is None or self._entries[place[0]].pods[place[1]][place[2]].unconfirmed_since is not None:
            self._store(pod, at)

    def remove_unconfirmed(self, pod: PodView) -> None:
        """Remove a deleted pod that the informer never reported."""
        if any(pod.uid == pod_entry.pod.uid for pod_entry in self.list_unconfirmed_pods(pod.job_uid)):
            self._drop(pod)

    def list_unconfirmed_pods(self, job_uid: str) -> tuple[PodEntry, ...]:
        """Return the job's pods that the informer has not reported."""
        entry = self._find_job_pods(job_uid)
        return (
            ()
            if entry is None
            else tuple(pod_entry for pod_entry in entry.list_all() if pod_entry.unconfirmed_since is not None)
        )

    def handle_event(self, change: Change) -> None:
        """Handle an Event."""
        warned = None if change.type in ("DELETED", "BOOKMARK") else read_warning(change.object)
        if warned is None:
            return
        place = self._positions.get(warned.pod_uid)
        if place is None:
            self._pending_warnings.add(warned)
            return
        key, node, replacement = place
        replacements = self._entries[key].pods[node]
        entry = replacements[replacement]
        after = replace(entry, warnings=append_warning(entry.warnings, warned))
        is_new = key[0] == warned.namespace and after != entry
        if is_new and self.memory_limits.reserve(entry.pod.uid, after.memory_size):
            replacements[replacement] = after
            self._announce(*key)

    def list_pods(self, job_uid: str) -> tuple[PodEntry, ...]:
        """Return all pods of the job, also those that were replaced."""
        entry = self._find_job_pods(job_uid)
        return () if entry is None else tuple(entry.list_all())

    def find_jobs_on(self, kube_node: str) -> frozenset[str]:
        """Return the uids of the jobs with a pod on this Kubernetes node."""
        return frozenset(
            job_uid
            for (_, job_uid), entry in self._entries.items()
            if any(pod_entry.pod.kube_node == kube_node for pod_entry in entry.list_all())
        )

    def get_newest_pod(self, job_uid: str, node: int) -> PodEntry | None:
        """Return the node's existing pod with the highest replacement number."""
        entry = self._find_job_pods(job_uid)
        return None if entry is None else entry.get_newest(node)

    def get_last_pod(self, job_uid: str, node: int) -> PodEntry | None:
        """Return the last observation of the node's newest pod, even if the pod is deleted."""
        entry = self._find_job_pods(job_uid)
        return None if entry is None else entry.get_newest(node) or entry.last_pods.get(node)

    def get_highest_replacement_number(self, job_uid: str, node: int) -> int:
        """Return the highest replacement number of the node's pods, deleted ones included; -1 if it never had a pod."""
        entry = self._find_job_pods(job_uid)
        return -1 if entry is None else entry.highest_numbers.get(node, -1)

    def list_surplus_pods(self, job_uid: str, nodes: int) -> tuple[PodEntry, ...]:
        """Return the job's surplus pods: those of nodes beyond `nodes`, and those that were replaced."""
        entry = self._find_job_pods(job_uid)
        if entry is None:
            return ()
        current = {newest.pod.uid for node in range(nodes) if (newest := entry.get_newest(node)) is not None}
        return tuple(surplus for surplus in entry.list_all() if surplus.pod.uid not in current)

    def find(self, pod_uid: str) -> PodIdentity | None:
        """Return the job, node and replacement number of an existing pod; None unless it is its node's newest pod."""
        place = self._positions.get(pod_uid)
        if place is None:
            return None
        (namespace, job_uid), node, replacement = place
        if self._namespaces.get(job_uid) != namespace:
            return None
        newest = self._entries[namespace, job_uid].get_newest(node)
        return PodIdentity(job_uid, node, replacement) if newest is not None and newest.pod.uid == pod_uid else None

    def _announce(self, namespace: str, job_uid: str) -> None:
        # The first reconcile of an unknown job reads all of its pods.
        if self._namespaces.get(job_uid) == namespace:
            self.on_change(job_uid)

    def _find_last_observed_pod(self, source: Object) -> PodView | None:
        """Return the last observation of a pod whose owner reference was removed."""
        place = self._positions.get(read_string(read_mapping(source.get("metadata")).get("uid")))
        if place is None:
            return None
        key, node, replacement = place
        return self._entries[key].pods[node][replacement].pod

    def _find_job_pods(self, job_uid: str) -> _JobPods | None:
        return self._entries.get((self._namespaces.get(job_uid, ""), job_uid))

    def _store(self, pod: PodView, unconfirmed_since: float | None = None) -> None:
        key = (pod.namespace, pod.job_uid)
        place = self._positions.get(pod.uid)
        previous = None if place is None else self._entries[place[0]].pods[place[1]][place[2]]
        observations = observe_pod(pod, None if previous is None else previous.observations, self.clock())
        pod_entry = PodEntry(
            pod,
            observations,
            self._pending_warnings.pop(pod.namespace, pod.uid) if previous is None else previous.warnings,
            unconfirmed_since,
        )
        if not self.memory_limits.reserve(pod.uid, pod_entry.memory_size):
            self._skipped_log.log(f"Pod {pod.namespace}/{pod.name}", pod.uid, MEMORY_EXHAUSTED)
            self._drop(pod)
            return
        entry = self._entries.setdefault(key, _JobPods())
        before = entry.pods.get(pod.node, {}).get(pod.replacement)
        # Another pod had the same name, and the informer missed its deletion.
        if before is not None and before.pod.uid != pod.uid:
            self._drop(before.pod)
        # `_drop` removes an entry without pods: add it again.
        entry = self._entries.setdefault(key, entry)
        entry.pods.setdefault(pod.node, {})[pod.replacement] = pod_entry
        entry.highest_numbers[pod.node] = max(pod.replacement, entry.highest_numbers.get(pod.node, -1))
        self._positions[pod.uid] = (key, pod.node, pod.replacement)

    def _drop(self, pod: PodView) -> None:
        self.memory_limits.release(pod.uid)
        self._pending_warnings.pop(pod.namespace, pod.uid)
        entry = self._entries.get((pod.namespace, pod.job_uid))
        place = self._positions.pop(pod.uid, None)
        if entry is None or place is None:
            return
        _, node, replacement = place
        replacements = entry.pods[node]
        dropped = replacements.pop(replacement)
        if not replacements:
            del entry.pods[node]
        entry.removed_uids[pod.uid] = None
        if len(entry.removed_uids) > MAX_DELETED_PODS:
            entry.removed_uids.popitem(last=False)
        # The informer may report a deletion with metadata only: then use the last observation.
        pod = pod if pod.phase else dropped.pod
        last = PodEntry(pod, observe_pod(pod, dropped.observations, self.clock()), dropped.warnings)
        is_newest = replacement == entry.highest_numbers.get(node)
        if is_newest and self.memory_limits.reserve(_make_last_pod_key(pod.job_uid, node), last.memory_size):
            entry.last_pods[node] = last
        # Kubernetes has deleted all pods of a deleted job.
        if not entry.pods and pod.job_uid not in self._namespaces:
            for other_node in entry.last_pods:
                self.memory_limits.release(_make_last_pod_key(pod.job_uid, other_node))
            del self._entries[pod.namespace, pod.job_uid]


def _make_last_pod_key(job_uid: str, node: int) -> str:
    """Return the key under which the memory of a node's last pod is reserved."""
    return f"{job_uid} {node}"
