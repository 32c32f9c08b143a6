"""Count what happens in this process, for metrics. The counts survive a change of the leader."""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import TypeVar

from muster.api.backends import BACKENDS
from muster.api.field_problems import InvalidResource
from muster.api.status.status import Status
from muster.controller.metrics import definitions
from muster.controller.metrics.durations import Durations
from muster.controller.metrics.namespaces import NamespaceLabels
from muster.controller.metrics.reconciles import ReconcileResult, classify
from muster.core.metrics.transitions import Transition, find_transition
from muster.core.status.significant_change import is_significant_change
from muster.objects.kubernetes.resource import Resource

UNKNOWN_BACKEND = "Unknown"
"""The backend of a job whose spec muster can't read."""

BACKEND_NAMES = (*BACKENDS, UNKNOWN_BACKEND)

CHANGE, PROGRESS = "Change", "Progress"

Publish = Callable[[Resource, Status, Status], None]

_T = TypeVar("_T")


def backend_of(resource: Resource) -> str:
    """Return the label value of the job's backend."""
    return UNKNOWN_BACKEND if isinstance(resource.job, InvalidResource) else resource.job.spec.backend


def _by_backend(bounds: tuple[float, ...]) -> dict[str, Durations]:
    return {name: Durations(bounds) for name in BACKEND_NAMES}


@dataclass
class Recorder:
    """Counts the transitions of jobs, status writes, reconciles and the delays of the event loop.

    `clock` returns Unix seconds, `monotonic` seconds of a clock that is never set.
    """

    clock: Callable[[], float]
    monotonic: Callable[[], float]
    namespaces: NamespaceLabels = field(default_factory=NamespaceLabels)
    restarts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    ends: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    stragglers: Counter[tuple[str, str]] = field(default_factory=Counter)
    starts: dict[str, Durations] = field(default_factory=lambda: _by_backend(definitions.START_SECONDS.bounds))
    detections: dict[str, Durations] = field(default_factory=lambda: _by_backend(definitions.DETECTION_SECONDS.bounds))
    recoveries: dict[str, Durations] = field(default_factory=lambda: _by_backend(definitions.RECOVERY_SECONDS.bounds))
    status_writes: Counter[str] = field(default_factory=lambda: Counter({CHANGE: 0, PROGRESS: 0}))
    reconciles: Counter[ReconcileResult] = field(default_factory=lambda: Counter(dict.fromkeys(ReconcileResult, 0)))
    reconcile_seconds: Durations = field(default_factory=lambda: Durations(definitions.RECONCILE_SECONDS.bounds))
    loop_lag: Durations = field(default_factory=lambda: Durations(definitions.LOOP_LAG_SECONDS.bounds))

    def counting(self, publish: Publish) -> Publish:
        """Return `publish`, which is called after each status write, with a count of the write."""

        def publish_and_count(resource: Resource, before: Status, after: Status) -> None:
            publish(resource, before, after)
            self.count_write(resource, before, after)

        return publish_and_count

    def count_write(self, resource: Resource, before: Status, after: Status) -> None:
        """Count a status write, and what it says about the job."""
        self.status_writes[CHANGE if is_significant_change(before, after) else PROGRESS] += 1
        transition = find_transition(before, after, resource.created_at, self.clock())
        self._count_transition(self.namespaces.label(resource.namespace), backend_of(resource), transition)

    def _count_transition(self, namespace: str, backend: str, transition: Transition) -> None:
        if transition.restart_reason is not None:
            self.restarts[namespace, backend, transition.restart_reason] += 1
        if transition.end_phase is not None and transition.end_reason is not None:
            self.ends[namespace, backend, transition.end_phase, transition.end_reason] += 1
        if transition.has_new_stragglers:
            self.stragglers[namespace, backend] += 1
        durations = (
            (self.starts, transition.start_seconds),
            (self.detections, transition.detection_seconds),
            (self.recoveries, transition.recovery_seconds),
        )
        for by_backend, seconds in durations:
            if seconds is not None:
                by_backend[backend].observe(seconds)

    async def measure(self, work: Callable[[], Awaitable[_T]]) -> _T:
        """Run a reconcile, and count its result and its duration."""
        started_at = self.monotonic()
        try:
            result = await work()
        except Exception as error:
            self._count_reconcile(classify(error), started_at)
            raise
        self._count_reconcile(ReconcileResult.DONE, started_at)
        return result

    def _count_reconcile(self, result: ReconcileResult, started_at: float) -> None:
        self.reconciles[result] += 1
        self.reconcile_seconds.observe(self.monotonic() - started_at)

    def make_room(self, current: Collection[str]) -> None:
        """If too many namespaces have label values, drop the counts of those that have no jobs."""
        removed = self.namespaces.make_room(current)
        if removed:
            self.restarts = Counter({key: count for key, count in self.restarts.items() if key[0] not in removed})
            self.ends = Counter({key: count for key, count in self.ends.items() if key[0] not in removed})
            self.stragglers = Counter({key: count for key, count in self.stragglers.items() if key[0] not in removed})
