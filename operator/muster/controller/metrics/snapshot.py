"""Collect the values of all metrics at one moment. `exposition.py` writes them."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from muster.controller.metrics import definitions
from muster.controller.metrics.definitions import Metric
from muster.controller.metrics.durations import DurationHistogram
from muster.controller.metrics.recorder import UNKNOWN_BACKEND, MetricsRecorder, get_backend_label
from muster.core.metrics.totals import Totals
from muster.objects.kubernetes.job_source import JobIdentity
from muster.objects.kubernetes.resource import Resource

_Labels = TypeVar("_Labels", bound=tuple[str, ...])

JOBS_PER_BATCH = 250
"""After counting this many jobs, which takes a millisecond, let other tasks run."""


@dataclass(frozen=True)
class MetricSources:
    """The sources of the values that the recorder does not have.

    `resources` returns the leader's jobs, `waiting_jobs` those that wait for memory; a standby has none. The keys of
    `api_requests` and `aws_requests` are the labels of their metrics.
    """

    version: str
    is_leader: Callable[[], bool]
    resources: Callable[[], tuple[Resource, ...]]
    waiting_jobs: Callable[[], tuple[JobIdentity, ...]]
    refusals: Callable[[], Mapping[str, int]]
    connections: Callable[[], int]
    api_requests: Callable[[], Mapping[tuple[str, str, str], int]]
    aws_requests: Callable[[], Mapping[tuple[str, str, str], int]]


@dataclass(frozen=True)
class Histogram:
    """A histogram: the number of durations up to each bound, and the sum of all durations."""

    buckets: tuple[tuple[str, float], ...]
    seconds: float


Value = float | Histogram


@dataclass(frozen=True)
class Sample:
    """The value of a metric for some values of its labels."""

    metric: Metric
    labels: tuple[str, ...]
    value: Value


async def take_snapshot(recorder: MetricsRecorder, sources: MetricSources) -> tuple[Sample, ...]:
    """Return the samples of all metrics, sorted by metric."""
    totals = await _count_jobs(recorder, sources)
    recorder.remove_unused({namespace for namespace, _, _ in totals.jobs})
    return (
        Sample(definitions.BUILD_INFO, (sources.version,), 1),
        Sample(definitions.LEADER, (), int(sources.is_leader())),
        *_make_samples(definitions.JOBS, totals.jobs),
        *_make_samples(definitions.RANKS, totals.ranks),
        *_make_samples(definitions.JOBS_ENDED, recorder.ends),
        *_make_samples(definitions.RESTARTS, recorder.restarts),
        *_make_samples(definitions.STRAGGLERS, recorder.stragglers),
        *_make_histogram_samples(definitions.START_SECONDS, recorder.starts),
        *_make_histogram_samples(definitions.DETECTION_SECONDS, recorder.detections),
        *_make_histogram_samples(definitions.RECOVERY_SECONDS, recorder.recoveries),
        *_make_samples(definitions.STATUS_WRITES, {(kind,): count for kind, count in recorder.status_writes.items()}),
        *_make_samples(definitions.RECONCILES, {(result,): count for result, count in recorder.reconciles.items()}),
        Sample(definitions.RECONCILE_SECONDS, (), _make_histogram(recorder.reconcile_seconds)),
        Sample(definitions.LOOP_LAG_SECONDS, (), _make_histogram(recorder.loop_lag)),
        *_make_samples(definitions.REFUSALS, {(reason,): count for reason, count in sources.refusals().items()}),
        Sample(definitions.CONNECTIONS, (), sources.connections()),
        *_make_samples(definitions.API_REQUESTS, sources.api_requests()),
        *_make_samples(definitions.AWS_REQUESTS, sources.aws_requests()),
    )


async def _count_jobs(recorder: MetricsRecorder, sources: MetricSources) -> Totals:
    totals, label = Totals(), recorder.namespaces.get_label
    for index, resource in enumerate(sources.resources()):
        if index % JOBS_PER_BATCH == 0:
            await asyncio.sleep(0)
        # Count a waiting job only once: `waiting_jobs` has it, too.
        if not resource.waits_for_memory:
            totals.add_job(label(resource.namespace), get_backend_label(resource), resource.status)
    for identity in sources.waiting_jobs():
        totals.add_job_waiting_for_memory(label(identity.namespace), UNKNOWN_BACKEND)
    return totals


def _make_samples(metric: Metric, counts: Mapping[_Labels, int]) -> Iterable[Sample]:
    return (Sample(metric, labels, count) for labels, count in counts.items())


def _make_histogram_samples(metric: Metric, by_backend: Mapping[str, DurationHistogram]) -> Iterable[Sample]:
    return (Sample(metric, (backend,), _make_histogram(durations)) for backend, durations in by_backend.items())


def _make_histogram(durations: DurationHistogram) -> Histogram:
    return Histogram(tuple(durations.get_buckets()), durations.seconds)
