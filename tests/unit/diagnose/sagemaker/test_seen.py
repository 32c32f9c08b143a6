"""AWS' descriptions as facts for the plan."""

import math
from datetime import UTC, datetime, timedelta

import pytest

from muster.core.training_job.facts import FailureKind
from muster.diagnose.sagemaker.request_failures import add_tries, build_request_failure
from muster.diagnose.sagemaker.training_job_facts import convert_description
from muster.objects.aws import errors
from muster.objects.aws.training_job import FinalMetric, SecondaryStatusTransition, TrainingJobDescription
from muster.render.sagemaker.request.identity import has_job_tags

T0 = datetime(2026, 11, 21, 4, tzinfo=UTC)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (errors.NoCredentials("none"), FailureKind.ACCESS),
        (errors.ExpiredCredentials("late"), FailureKind.ACCESS),
        (errors.AccessDenied("no", "sagemaker:StopTrainingJob", "arn"), FailureKind.ACCESS),
        (errors.Throttled("slow"), FailureKind.SERVICE),
        (errors.Unavailable("away"), FailureKind.SERVICE),
        (errors.NoCapacity("full"), FailureKind.CAPACITY),
        (errors.Invalid("wrong"), FailureKind.REFUSED),
        (errors.NotFound("where"), FailureKind.REFUSED),
        (errors.AwsError("new"), FailureKind.SERVICE),
    ],
)
def test_each_error_has_a_kind(error: errors.AwsError, kind: FailureKind) -> None:
    failure = build_request_failure(error, 7.0)
    assert (failure.kind, failure.problem.reason, failure.problem.message, failure.at) == (
        kind,
        error.reason,
        error.message,
        7.0,
    )


def test_what_comes_in_a_row_is_counted() -> None:
    slow, denied = (
        build_request_failure(errors.Throttled("slow"), 1.0),
        build_request_failure(errors.NoCredentials("none"), 2.0),
    )
    assert add_tries(slow, add_tries(slow, None)).tries == 2
    assert add_tries(denied, add_tries(slow, None)).tries == 1


def test_only_refusals_make_a_row_of_refusals_longer() -> None:
    def after(*kinds: str) -> float:
        current = None
        for minute, kind in enumerate(kinds):
            current = (
                None if kind == "success" else add_tries(build_request_failure(_ERRORS[kind], 60.0 * minute), current)
            )
        return 0.0 if current is None else current.refused_seconds

    assert after("denied") == 0.0
    assert after("denied", "denied", "denied") == 120.0
    assert after("denied", "denied", "slow", "denied") == 60.0
    assert after("denied", "denied", "success", "denied") == 0.0
    assert after("denied", "denied", "full") == 0.0


_ERRORS = {"denied": errors.NoCredentials("none"), "slow": errors.Throttled("slow"), "full": errors.NoCapacity("full")}


def described(**changes: object) -> TrainingJobDescription:
    fields: dict[str, object] = {
        "name": "vit-1",
        "arn": "arn",
        "status": "InProgress",
        "secondary_status": "Training",
        "created_at": T0,
        "modified_at": T0 + timedelta(seconds=60),
    }
    return TrainingJobDescription(**{**fields, **changes})  # type: ignore[arg-type]


def test_a_training_jobs_times_are_unix_seconds() -> None:
    spans = (
        SecondaryStatusTransition("Starting", T0, T0 + timedelta(seconds=5), "soon"),
        SecondaryStatusTransition("Training", T0, None, ""),
    )
    metrics = (FinalMetric("loss", 0.5, T0), FinalMetric("odd", math.nan, T0))
    result = convert_description(described(transitions=spans, metrics=metrics, started_at=T0))
    assert [(span.status, span.started_at, span.ended_at) for span in result.history] == [
        ("Starting", T0.timestamp(), T0.timestamp() + 5),
        ("Training", T0.timestamp(), None),
    ]
    assert [(metric.name, metric.value) for metric in result.metrics] == [("loss", 0.5)]
    assert (result.started_at, result.ended_at) == (T0.timestamp(), None)


def test_one_that_never_trained_ended_when_it_last_changed() -> None:
    assert convert_description(described(status="Failed")).ended_at == T0.timestamp() + 60


@pytest.mark.parametrize(
    ("groups", "kind", "count"),
    [
        ((("a", "ml.c5.xlarge", 2), ("b", "ml.c5.xlarge", 1)), "ml.c5.xlarge", 3),
        ((("a", "ml.c5.xlarge", 2), ("b", "ml.p3.2xlarge", 1)), None, 3),
    ],
)
def test_instances_of_all_groups_count(groups: tuple[tuple[str, str, int], ...], kind: str | None, count: int) -> None:
    result = convert_description(described(instance_groups=groups))
    assert (result.instance_type, result.instance_count) == (kind, count)


@pytest.mark.parametrize(
    ("tags", "is_own"),
    [
        ({"muster.dev/job-uid": "u", "muster.dev/attempt": "2"}, True),
        ({"muster.dev/job-uid": "u", "muster.dev/attempt": "1"}, False),
        ({"muster.dev/job-uid": "other", "muster.dev/attempt": "2"}, False),
        ({}, False),
    ],
)
def test_whose_it_is_stands_in_its_tags(tags: dict[str, str], *, is_own: bool) -> None:
    assert has_job_tags(tags, "u", 2) == is_own
