"""Record this process' metrics. The counts are kept when the leader changes."""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import TypeVar

from muster.api.backends import BACKENDS
from muster.api.field_problems import InvalidResource
from muster.api.status.status import Status
from muster.controller.metrics import definitions
from muster.controller.metrics.durations import DurationHistogram
from muster.controller.metrics.namespaces import NamespaceLabels
from muster.controller.metrics.reconciles import ReconcileOutcome, classify_error
from muster.core.metrics.transitions import Transition, find_transition
from muster.core.status.significant_change import is_significant_change
from muster.objects.kubernetes.resource import Resource

UNKNOWN_BACKEND = "Unknown"
"""The backend of a job whose spec muster can't read."""

BACKEND_NAMES = (*BACKENDS, UNKNOWN_BACKEND)

CHANGE, PROGRESS = "Change", "Progress"

Publish = Callable[[Resource, Status, Status], None]

_T = TypeVar("_T")


def get_backend_label(resource: Resource) -> str:
    """Return the label value of the job's backend."""
    return UNKNOWN_BACKEND if isinstance(resource.job, InvalidResource) else resource.job.spec.backend


def _make_histograms(bounds: tuple[float, ...]) -> dict[str, DurationHistogram]:
    return {name: DurationHistogram(bounds) for name in BACKEND_NAMES}


@dataclass
class MetricsRecorder:
    """Counts the transitions of jobs, status writes, reconciles and the delays of the event loop.

    `clock` returns Unix seconds, `monotonic` monotonic seconds.
    """

    clock: Callable[[], float]
    monotonic: Callable[[], float]
    namespaces: NamespaceLabels = field(default_factory=NamespaceLabels)
    restarts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    ends: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    stragglers: Counter[tuple[str, str]] = field(default_factory=Counter)
    starts: dict[str, DurationHistogram] = field(
        default_factory=lambda: _make_histograms(definitions.START_SECONDS.bounds)
    )
    detections: dict[str, DurationHistogram] = field(
        default_factory=lambda: _make_histograms(definitions.DETECTION_SECONDS.bounds)
    )
    recoveries: dict[str, DurationHistogram] = field(
        default_factory=lambda: _make_histograms(definitions.RECOVERY_SECONDS.bounds)
    )
    status_writes: Counter[str] = field(default_factory=lambda: Counter({CHANGE: 0, PROGRESS: 0}))
    reconciles: Counter[ReconcileOutcome] = field(default_factory=lambda: Counter(dict.fromkeys(ReconcileOutcome, 0)))
    reconcile_seconds: DurationHistogram = field(
        default_factory=lambda: DurationHistogram(definitions.RECONCILE_SECONDS.bounds)
    )
    loop_lag: DurationHistogram = field(default_factory=lambda: DurationHistogram(definitions.LOOP_LAG_SECONDS.bounds))

    def count_writes_of(self, publish: Publish) -> Publish:
        """Wrap `publish`, which is called after each status write, to count the writes."""

        def publish_and_count(resource: Resource, before: Status, after: Status) -> None:
            publish(resource, before, after)
            self.count_write(resource, before, after)

        return publish_and_count

    def count_write(self, resource: Resource, before: Status, after: Status) -> None:
        """Count a status write, and the job's transition that it shows."""
        self.status_writes[CHANGE if is_significant_change(before, after) else PROGRESS] += 1
        transition = find_transition(before, after, resource.created_at, self.clock())
        self._count_transition(self.namespaces.get_label(resource.namespace), get_backend_label(resource), transition)

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
            self._count_reconcile(classify_error(error), started_at)
            raise
        self._count_reconcile(ReconcileOutcome.DONE, started_at)
        return result

    def _count_reconcile(self, result: ReconcileOutcome, started_at: float) -> None:
        self.reconciles[result] += 1
        self.reconcile_seconds.observe(self.monotonic() - started_at)

    def remove_unused(self, current: Collection[str]) -> None:
        """If too many namespaces have label values, drop the counts of those that have no jobs."""
        removed_namespaces = self.namespaces.remove_unused(current)
        if removed_namespaces:
            self.restarts = Counter(
                {key: count for key, count in self.restarts.items() if key[0] not in removed_namespaces}
            )
            self.ends = Counter({key: count for key, count in self.ends.items() if key[0] not in removed_namespaces})
            self.stragglers = Counter(
                {key: count for key, count in self.stragglers.items() if key[0] not in removed_namespaces}
            )
