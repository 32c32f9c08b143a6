"""What the operator counts while it runs."""

from typing import Any

import pytest

from muster.api.status.progress import Progress
from muster.api.status.status import Status
from muster.controller.jobs.job_controller import UnreadableStatus
from muster.controller.metrics.durations import DurationHistogram
from muster.controller.metrics.namespaces import MAX_NAMESPACES, OTHERS, NamespaceLabels
from muster.controller.metrics.reconciles import ReconcileOutcome
from muster.controller.metrics.recorder import CHANGE, PROGRESS, MetricsRecorder
from muster.controller.status.writer import JobNotFound, NotLeading, ResourceChanged
from muster.core.metrics.transitions import Transition
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.resource import Resource, read_resource
from unit.controller.cluster_resources import resource

RUNNING = Status(phase="Running", attempt=1)
FAILURE = Transition(restart_reason="RankFailed")


def recorder() -> MetricsRecorder:
    return MetricsRecorder(lambda: 1_795_233_929.0, lambda: 5.0)


def job(namespace: str = "team", **spec: Any) -> Resource:
    return read_resource(resource(metadata={"namespace": namespace}, spec=spec))


def test_a_write_is_published_and_counted() -> None:
    counts, published = recorder(), []
    write = counts.count_writes_of(lambda *arguments: published.append(arguments))
    write(job(), Status(), RUNNING)
    write(job(), RUNNING, RUNNING.model_copy(update={"progress": Progress(step=1)}))
    assert len(published) == 2
    assert counts.status_writes == {CHANGE: 1, PROGRESS: 1}
    assert dict(counts.starts["Kubernetes"].get_buckets())["+Inf"] == 1


def test_a_job_with_an_unreadable_spec_has_no_backend() -> None:
    counts = recorder()
    counts.count_write(job(nodes="many"), Status(), RUNNING)
    assert dict(counts.starts["Unknown"].get_buckets())["+Inf"] == 1


@pytest.mark.parametrize(
    ("error", "result"),
    [
        (None, ReconcileOutcome.DONE),
        (ResourceChanged(), ReconcileOutcome.CHANGED),
        (JobNotFound(), ReconcileOutcome.DELETED),
        (NotLeading(), ReconcileOutcome.NOT_LEADING),
        (UnreadableStatus(), ReconcileOutcome.UNREADABLE),
        (ApiError(500, "InternalError", ""), ReconcileOutcome.REFUSED),
        (KeyError(), ReconcileOutcome.BUG),
    ],
)
async def test_a_reconcile_is_counted_by_its_result(error: Exception | None, result: ReconcileOutcome) -> None:
    async def work() -> int:
        if error is not None:
            raise error
        return 7

    counts = recorder()
    if error is None:
        assert await counts.measure(work) == 7
    else:
        with pytest.raises(type(error)):
            await counts.measure(work)
    assert {each: count for each, count in counts.reconciles.items() if count} == {result: 1}
    assert dict(counts.reconcile_seconds.get_buckets())["+Inf"] == 1


def test_durations_are_counted_up_to_each_bound() -> None:
    durations = DurationHistogram((0.5, 1.0))
    for seconds in (0.1, 0.5, 0.7, 3.0):
        durations.observe(seconds)
    assert tuple(durations.get_buckets()) == (("0.5", 2), ("1", 3), ("+Inf", 4))
    assert durations.seconds == pytest.approx(4.3)


def test_the_number_of_namespaces_is_limited_and_unused_ones_make_room() -> None:
    counts = recorder()
    for number in range(MAX_NAMESPACES + 10):
        failed = job(f"n{number}")
        counts._count_transition(counts.namespaces.get_label(failed.namespace), "Kubernetes", FAILURE)
    assert len(counts.restarts) == MAX_NAMESPACES + 1
    assert counts.restarts[OTHERS, "Kubernetes", "RankFailed"] == 10
    counts.remove_unused({"n1", "n5000"})
    assert set(counts.restarts) == {(name, "Kubernetes", "RankFailed") for name in ("n1", OTHERS)}
    assert counts.namespaces.get_label("n5000") == "n5000"


def test_namespaces_without_jobs_stay_while_there_is_room() -> None:
    labels = NamespaceLabels()
    labels.get_label("team")
    assert labels.remove_unused(()) == frozenset()
