from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.objects.aws import decode
from muster.objects.aws.errors import Unavailable
from muster.objects.aws.training_job import FinalMetric, SecondaryStatusTransition, TrainingJobDescription

AT = datetime(2026, 1, 1, tzinfo=UTC)
LATER = datetime(2026, 1, 2, tzinfo=UTC)
LEAST: dict[str, object] = {
    "TrainingJobName": "a-1",
    "TrainingJobArn": "arn:a-1",
    "TrainingJobStatus": "InProgress",
    "SecondaryStatus": "Starting",
    "CreationTime": AT,
    "LastModifiedTime": LATER,
}


def test_the_least_that_a_description_has() -> None:
    assert decode.decode_description(LEAST) == TrainingJobDescription(
        "a-1", "arn:a-1", "InProgress", "Starting", AT, LATER
    )


def test_all_of_a_description() -> None:
    result = decode.decode_description(
        LEAST
        | {
            "TrainingJobStatus": "Failed",
            "SecondaryStatus": "Failed",
            "FailureReason": "AlgorithmError",
            "TrainingStartTime": AT,
            "TrainingEndTime": LATER,
            "SecondaryStatusTransitions": [
                {"Status": "Starting", "StartTime": AT, "EndTime": LATER, "StatusMessage": "so"},
                {"Status": "Failed", "StartTime": LATER},
            ],
            "FinalMetricDataList": [{"MetricName": "loss", "Value": 0.5, "Timestamp": AT}],
            "TrainingTimeInSeconds": 7,
            "BillableTimeInSeconds": 5,
            "AlgorithmSpecification": {"TrainingImage": "image:1"},
            "ResourceConfig": {"InstanceType": "ml.c5.xlarge", "InstanceCount": 2},
        }
    )
    assert result == TrainingJobDescription(
        name="a-1",
        arn="arn:a-1",
        status="Failed",
        secondary_status="Failed",
        created_at=AT,
        modified_at=LATER,
        started_at=AT,
        ended_at=LATER,
        failure_reason="AlgorithmError",
        transitions=(
            SecondaryStatusTransition("Starting", AT, LATER, "so"),
            SecondaryStatusTransition("Failed", LATER, None, ""),
        ),
        metrics=(FinalMetric("loss", 0.5, AT),),
        training_seconds=7,
        billable_seconds=5,
        image="image:1",
        instance_type="ml.c5.xlarge",
        instance_count=2,
    )


@pytest.mark.parametrize("status", ["Completed", "Failed", "Stopped"])
def test_an_end_is_an_end(status: str) -> None:
    assert decode.decode_description(LEAST | {"TrainingJobStatus": status}).has_ended


@pytest.mark.parametrize("status", ["InProgress", "Stopping", "Deleting", "SomethingNew"])
def test_no_other_status_is_an_end(status: str) -> None:
    assert not decode.decode_description(LEAST | {"TrainingJobStatus": status}).has_ended


def test_a_summary_without_what_older_services_leave_out() -> None:
    result = decode.decode_summary(
        {key: LEAST[key] for key in LEAST if key not in {"SecondaryStatus", "LastModifiedTime"}}
    )
    assert (result.secondary_status, result.modified_at) == ("", AT)


def test_what_is_no_training_job_is_no_answer() -> None:
    with pytest.raises(Unavailable, match="has no CreationTime"):
        decode.decode_summary({"TrainingJobName": "a-1"})


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.datetimes(timezones=st.just(UTC)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(
        st.sampled_from(
            [
                *("SecondaryStatusTransitions", "FinalMetricDataList", "ResourceConfig", "AlgorithmSpecification"),
                *(
                    "TrainingJobStatus",
                    "TrainingEndTime",
                    "BillableTimeInSeconds",
                    "WarmPoolStatus",
                    "LastModifiedTime",
                ),
            ]
        ),
        VALUES,
    )
)
def test_nothing_that_an_answer_holds_breaks_more_than_the_answer(odd: dict[str, object]) -> None:
    try:
        result = decode.decode_description(LEAST | odd)
    except Unavailable:
        return
    assert result.name == "a-1"
