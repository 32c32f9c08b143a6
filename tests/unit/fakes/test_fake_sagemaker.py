"""The tests' fake SageMaker accepts the SDK's requests, and refuses what the service refuses."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fakes.sagemaker_service.jobs import Jobs, answer
from fakes.sagemaker_service.refusal import Refusal
from fakes.sagemaker_service.script import STOPPING, Stage, make_completing_script, make_failing_script
from muster_dev.paths import ROOT
from support.rows import check_rows
from support.training_job_requests import make_training_job_request

GOLDEN = sorted((ROOT / "tests/unit/render/sagemaker/golden").glob("*.json"))
REFUSED = {"plain_spot_and_warmpool"}
LIST_OF_CASES = "cases"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def jobs() -> Jobs:
    return Jobs("111122223333", "us-west-2")


def test_what_the_sdk_sends_is_taken() -> None:
    def check(path: Path) -> None:
        # The names of some contain the SDK's version, which SageMaker refuses.
        request = json.loads(path.read_text(encoding="utf-8")) | {"TrainingJobName": "golden"}
        answer(jobs(), "CreateTrainingJob", request, NOW)

    check_rows([path for path in GOLDEN if path.stem not in {*REFUSED, LIST_OF_CASES}], check)


def test_spot_and_a_warm_pool_are_refused_together() -> None:
    (path,) = (path for path in GOLDEN if path.stem in REFUSED)
    with pytest.raises(Refusal, match="KeepAlivePeriodInSeconds"):
        answer(jobs(), "CreateTrainingJob", json.loads(path.read_text(encoding="utf-8")), NOW)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"TrainingJobName": "a_1"}, "'trainingJobName' failed to satisfy constraint: Member must satisfy regular"),
        ({"TrainingJobName": "a" * 64}, "length less than or equal to 63"),
        ({"Unknown": 1}, "Unknown parameter in input"),
        ({"HyperParameters": {"a": 1}}, "Invalid type for parameter HyperParameters.a"),
        ({"HyperParameters": {"a": "x" * 2501}}, "length less than or equal to 2500"),
        ({"HyperParameters": {str(number): "" for number in range(101)}}, "length less than or equal to 100"),
        ({"Environment": {"a b": "x"}}, "environment.key"),
        ({"Tags": [{"Key": str(number), "Value": ""} for number in range(51)]}, "length less than or equal to 50"),
        ({"AlgorithmSpecification": {"TrainingInputMode": "File"}}, "TrainingImage and AlgorithmName"),
        (
            {"AlgorithmSpecification": {"TrainingImage": "i:1", "TrainingInputMode": "Slow"}},
            "enum value set: [Pipe, File, FastFile]",
        ),
        ({"ResourceConfig": {"VolumeSizeInGB": 1}}, "InstanceGroups, or InstanceType"),
        ({"StoppingCondition": {"MaxRuntimeInSeconds": 28 * 86400 + 1}}, "MaxRuntimeInSeconds"),
        ({"StoppingCondition": {"MaxRuntimeInSeconds": 1, "MaxWaitTimeInSeconds": 2}}, "EnableManagedSpotTraining"),
        ({"RoleArn": "arn:aws:iam::1:role/R-is-long-enough"}, "'roleArn' failed to satisfy constraint"),
    ],
)
def test_what_the_service_refuses_is_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(Refusal) as caught:
        answer(jobs(), "CreateTrainingJob", make_training_job_request("a-1", **changes), NOW)
    assert caught.value.code == "ValidationException"
    assert words in caught.value.message


def test_a_job_goes_its_way_by_the_clock() -> None:
    place = jobs()
    place.script = lambda _request: make_completing_script(60, stage_seconds=10)
    answer(place, "CreateTrainingJob", make_training_job_request("a-1"), NOW)
    job = place.by_name["a-1"]
    seen = [job.state(NOW + timedelta(seconds=at))[1].secondary for at in (0, 10, 20, 79, 80, 90, 9000)]
    assert seen == ["Starting", "Downloading", "Training", "Training", "Uploading", "Completed", "Completed"]
    assert job.make_description(NOW + timedelta(seconds=100))["BillableTimeInSeconds"] == 80


def test_a_stop_takes_its_time_and_ends_all_else() -> None:
    place = jobs()
    place.script = lambda _request: make_failing_script("so", 60, stage_seconds=10)
    answer(place, "CreateTrainingJob", make_training_job_request("a-1"), NOW)
    answer(place, "StopTrainingJob", {"TrainingJobName": "a-1"}, NOW + timedelta(seconds=30))
    job = place.by_name["a-1"]
    seen = [job.state(NOW + timedelta(seconds=at))[1].status for at in (29, 30, 30 + STOPPING.seconds, 9000)]
    assert seen == ["InProgress", "Stopping", "Stopped", "Stopped"]
    with pytest.raises(Refusal, match="in status Stopped"):
        answer(place, "StopTrainingJob", {"TrainingJobName": "a-1"}, NOW + timedelta(seconds=90))


def test_a_quota_counts_what_runs() -> None:
    place = jobs()
    place.quota["ml.g5.2xlarge"] = 3
    place.script = lambda _request: (Stage("Training", 60), Stage("Completed", status="Completed"))
    answer(place, "CreateTrainingJob", make_training_job_request("a-1"), NOW)
    with pytest.raises(
        Refusal, match="is 3 Instances, with current utilization of 2 Instances and a request delta of 2"
    ):
        answer(place, "CreateTrainingJob", make_training_job_request("a-2"), NOW)
    answer(place, "CreateTrainingJob", make_training_job_request("a-2"), NOW + timedelta(seconds=60))


def test_a_name_is_taken_until_its_job_is_deleted() -> None:
    place = jobs()
    answer(place, "CreateTrainingJob", make_training_job_request("a-1"), NOW)
    with pytest.raises(Refusal, match="ResourceInUse"):
        answer(place, "CreateTrainingJob", make_training_job_request("a-1"), NOW)
    with pytest.raises(Refusal, match="ResourceInUse"):
        answer(place, "DeleteTrainingJob", {"TrainingJobName": "a-1"}, NOW)
    later = NOW + timedelta(hours=1)
    answer(place, "DeleteTrainingJob", {"TrainingJobName": "a-1"}, later)
    answer(place, "CreateTrainingJob", make_training_job_request("a-1"), later)


@pytest.mark.parametrize(
    ("request_", "names"),
    [
        ({}, ["a-0", "a-1", "b-2"]),
        ({"SortOrder": "Descending"}, ["b-2", "a-1", "a-0"]),
        ({"SortBy": "Name", "SortOrder": "Ascending"}, ["a-0", "a-1", "b-2"]),
        ({"NameContains": "a-"}, ["a-0", "a-1"]),
        ({"StatusEquals": "Completed"}, ["a-0"]),
        ({"CreationTimeAfter": NOW.timestamp() + 1}, ["b-2"]),
        ({"LastModifiedTimeAfter": NOW.timestamp() + 1}, ["a-0", "b-2"]),
        ({"LastModifiedTimeBefore": NOW.timestamp() + 1.5}, ["a-1"]),
    ],
)
def test_listings_show_what_is_asked_for(request_: dict[str, object], names: list[str]) -> None:
    place = jobs()
    training = Stage("Training")
    place.script = lambda request: (
        (Stage("Training", 5), Stage("Completed", status="Completed"))
        if request["TrainingJobName"] == "a-0"
        else (training,)
    )
    for number, name in enumerate(["a-0", "a-1", "b-2"]):
        answer(place, "CreateTrainingJob", make_training_job_request(name), NOW + timedelta(seconds=number))
    result = answer(place, "ListTrainingJobs", request_, NOW + timedelta(seconds=60))["TrainingJobSummaries"]
    assert isinstance(result, list)
    assert [summary["TrainingJobName"] for summary in result] == names
