"""The values of all metrics at one moment, without the library that writes them."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from muster.controller.metrics import definitions
from muster.controller.metrics.definitions import Metric
from muster.controller.metrics.durations import Durations
from muster.controller.metrics.recorder import UNKNOWN_BACKEND, Recorder, backend_of
from muster.core.metrics.totals import Totals
from muster.objects.kubernetes.job_source import JobIdentity
from muster.objects.kubernetes.resource import Resource

_Labels = TypeVar("_Labels", bound=tuple[str, ...])

JOBS_AT_ONCE = 250
"""The number of jobs that are counted before other tasks may run: a millisecond's work."""


@dataclass(frozen=True)
class Sources:
    """The sources of the values that the recorder does not have.

    `resources` are the leader's jobs, `waiting` those that wait for memory; a standby has none. The requests' keys are
    the labels of their metrics.
    """

    version: str
    is_leader: Callable[[], bool]
    resources: Callable[[], tuple[Resource, ...]]
    waiting: Callable[[], tuple[JobIdentity, ...]]
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


async def take_snapshot(recorder: Recorder, sources: Sources) -> tuple[Sample, ...]:
    """Return the samples of all metrics, sorted by metric."""
    totals = await _count_jobs(recorder, sources)
    recorder.make_room({namespace for namespace, _, _ in totals.jobs})
    return (
        Sample(definitions.BUILD_INFO, (sources.version,), 1),
        Sample(definitions.LEADER, (), int(sources.is_leader())),
        *_counts(definitions.JOBS, totals.jobs),
        *_counts(definitions.RANKS, totals.ranks),
        *_counts(definitions.JOBS_ENDED, recorder.ends),
        *_counts(definitions.RESTARTS, recorder.restarts),
        *_counts(definitions.STRAGGLERS, recorder.stragglers),
        *_histograms(definitions.START_SECONDS, recorder.starts),
        *_histograms(definitions.DETECTION_SECONDS, recorder.detections),
        *_histograms(definitions.RECOVERY_SECONDS, recorder.recoveries),
        *_counts(definitions.STATUS_WRITES, {(kind,): count for kind, count in recorder.status_writes.items()}),
        *_counts(definitions.RECONCILES, {(result,): count for result, count in recorder.reconciles.items()}),
        Sample(definitions.RECONCILE_SECONDS, (), _histogram(recorder.reconcile_seconds)),
        Sample(definitions.LOOP_LAG_SECONDS, (), _histogram(recorder.loop_lag)),
        *_counts(definitions.REFUSALS, {(reason,): count for reason, count in sources.refusals().items()}),
        Sample(definitions.CONNECTIONS, (), sources.connections()),
        *_counts(definitions.API_REQUESTS, sources.api_requests()),
        *_counts(definitions.AWS_REQUESTS, sources.aws_requests()),
    )


async def _count_jobs(recorder: Recorder, sources: Sources) -> Totals:
    totals, label = Totals(), recorder.namespaces.label
    for index, resource in enumerate(sources.resources()):
        if index % JOBS_AT_ONCE == 0:
            await asyncio.sleep(0)
        # `waiting` has it, too, once its status says so.
        if not resource.waits_for_memory:
            totals.add_job(label(resource.namespace), backend_of(resource), resource.status)
    for identity in sources.waiting():
        totals.add_job_waiting_for_memory(label(identity.namespace), UNKNOWN_BACKEND)
    return totals


def _counts(metric: Metric, counts: Mapping[_Labels, int]) -> Iterable[Sample]:
    return (Sample(metric, labels, count) for labels, count in counts.items())


def _histograms(metric: Metric, by_backend: Mapping[str, Durations]) -> Iterable[Sample]:
    return (Sample(metric, (backend,), _histogram(durations)) for backend, durations in by_backend.items())


def _histogram(durations: Durations) -> Histogram:
    return Histogram(tuple(durations.buckets()), durations.seconds)
