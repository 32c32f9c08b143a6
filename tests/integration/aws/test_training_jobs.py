import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from botocore.config import Config

from fakes.sagemaker_service.faults import Fault
from fakes.sagemaker_service.script import Stage, make_completing_script, make_failing_script
from fakes.sagemaker_service.service import Service
from muster.api.config.sagemaker import AwsEndpoints
from muster.clients.aws import connection
from muster.clients.aws.client import Aws
from muster.objects.aws.access import AwsAccess
from muster.objects.aws.errors import (
    AlreadyExists,
    AwsError,
    Invalid,
    NoCapacity,
    NotFound,
    Throttled,
    Unavailable,
)
from muster.objects.aws.listing import ListFilter
from support.training_job_requests import make_training_job_request

HERE = AwsAccess("us-west-2")


async def test_a_job_is_created_and_described(aws: Aws, service: Service) -> None:
    service.get_jobs().script = lambda _request: (Stage("Training"),)
    jobs = aws.get_training_jobs(HERE)
    arn = await jobs.create(make_training_job_request("a-1"))
    assert arn == "arn:aws:sagemaker:us-west-2:111122223333:training-job/a-1"
    description = await jobs.describe("a-1")
    assert (description.name, description.arn, description.status, description.secondary_status) == (
        "a-1",
        arn,
        "InProgress",
        "Training",
    )
    assert (description.image, description.instance_type, description.instance_count) == ("image:1", "ml.g5.2xlarge", 2)
    assert [step.status for step in description.transitions] == ["Training"]
    assert description.created_at.tzinfo is not None
    assert await jobs.list_tags(arn) == {"muster.dev/job-uid": "uid-1"}


async def test_instance_groups_have_their_names(aws: Aws) -> None:
    groups = [
        {"InstanceGroupName": "a", "InstanceType": "ml.p4d.24xlarge", "InstanceCount": 1},
        {"InstanceGroupName": "b", "InstanceType": "ml.c5.xlarge", "InstanceCount": 3},
    ]
    jobs = aws.get_training_jobs(HERE)
    await jobs.create(make_training_job_request("a-1", ResourceConfig={"InstanceGroups": groups, "VolumeSizeInGB": 30}))
    description = await jobs.describe("a-1")
    assert description.instance_groups == (("a", "ml.p4d.24xlarge", 1), ("b", "ml.c5.xlarge", 3))
    assert (description.instance_type, description.instance_count) == ("", None)


async def test_an_end_has_its_billed_time(aws: Aws, service: Service) -> None:
    service.get_jobs().script = lambda _request: make_completing_script(0.0, stage_seconds=0.0, loss=0.5)
    jobs = aws.get_training_jobs(HERE)
    await jobs.create(make_training_job_request("a-1"))
    description = await jobs.describe("a-1")
    assert description.has_ended
    assert description.billable_seconds == 0
    assert [(metric.name, metric.value) for metric in description.metrics] == [("loss", 0.5)]


async def test_a_failure_has_its_reason(aws: Aws, service: Service) -> None:
    service.get_jobs().script = lambda _request: make_failing_script(
        "AlgorithmError: exit code 1", 0.0, stage_seconds=0.0
    )
    jobs = aws.get_training_jobs(HERE)
    await jobs.create(make_training_job_request("a-1"))
    assert (await jobs.describe("a-1")).failure_reason == "AlgorithmError: exit code 1"


async def test_a_stop_is_asked_for_once_and_again(aws: Aws, service: Service) -> None:
    jobs = aws.get_training_jobs(HERE)
    await jobs.create(make_training_job_request("a-1"))
    await jobs.stop("a-1")
    assert (await jobs.describe("a-1")).status == "Stopping"
    await jobs.stop("a-1")
    assert [call.outcome for call in service.list_calls("StopTrainingJob")] == ["", "ValidationException"]


async def test_listings_are_newest_first_and_in_pages(aws: Aws, service: Service) -> None:
    jobs = aws.get_training_jobs(HERE)
    now = datetime.now(UTC)
    for number in range(150):
        service.get_jobs().create(make_training_job_request(f"a-{number}"), now - timedelta(seconds=200 - number))
    first = await jobs.list_page(ListFilter())
    second = await jobs.list_page(ListFilter(), first.next_token)
    assert (len(first.summaries), len(second.summaries), second.next_token) == (100, 50, "")
    assert first.summaries[0].name == "a-149"
    assert first.at is not None
    assert abs(first.at - now) < timedelta(seconds=60)


async def test_jobs_found_by_name_are_newest_first(aws: Aws, service: Service) -> None:
    now = datetime.now(UTC)
    for name, age in (("a-2", 30), ("a-1", 20), ("b-1", 15), ("a-3", 10), ("a-0", 3600)):
        service.get_jobs().create(make_training_job_request(name), now - timedelta(seconds=age))
    found = await aws.get_training_jobs(HERE).find_by_name("a-", now - timedelta(seconds=60))
    assert [summary.name for summary in found] == ["a-3", "a-1", "a-2"]


async def test_listings_leave_out_what_was_not_modified_since(aws: Aws, service: Service) -> None:
    now = datetime.now(UTC)
    service.get_jobs().script = lambda _request: (Stage("Training"),)
    for number in range(10):
        service.get_jobs().create(make_training_job_request(f"a-{number}"), now - timedelta(seconds=100 - number))
    page = await aws.get_training_jobs(HERE).list_page(ListFilter(modified_after=now - timedelta(seconds=94)))
    assert [summary.name for summary in page.summaries] == ["a-9", "a-8", "a-7"]


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({}, AlreadyExists, "a training job with this name already exists"),
        ({"TrainingJobName": "b_1"}, Invalid, "regular expression"),
        ({"TrainingJobName": "b-1", "RoleArn": 7}, Invalid, "Invalid type for parameter RoleArn"),
        ({"TrainingJobName": "b-1", "Environment": {"A": "x" * 600}}, Invalid, "less than or equal to 512"),
        ({"TrainingJobName": "b-1", "EnableManagedSpotTraining": True}, Invalid, "MaxWaitTimeInSeconds"),
        (
            {
                "TrainingJobName": "b-1",
                "ResourceConfig": {"InstanceType": "ml.g5.2xlarge", "InstanceCount": 7, "VolumeSizeInGB": 30},
            },
            NoCapacity,
            "'ml.g5.2xlarge for training job usage' is 8 Instances, with current utilization of 2 Instances",
        ),
    ],
)
async def test_a_refusal_quotes_the_service(
    aws: Aws, service: Service, changes: dict[str, object], error: type[AwsError], words: str
) -> None:
    service.get_jobs().quota["ml.g5.2xlarge"] = 8
    service.get_jobs().create(make_training_job_request("a-1"), service.now())
    with pytest.raises(error) as caught:
        await aws.get_training_jobs(HERE).create(make_training_job_request("a-1") | changes)
    assert words in caught.value.message


async def test_a_job_that_is_not_there_is_not_found(aws: Aws) -> None:
    jobs = aws.get_training_jobs(HERE)
    with pytest.raises(NotFound):
        await jobs.describe("a-1")
    with pytest.raises(NotFound):
        await jobs.stop("a-1")


@pytest.mark.parametrize("fault", [Fault.FAIL, Fault.FAIL_AFTER, Fault.DROP, Fault.DROP_AFTER])
async def test_a_lost_answer_leaves_open_what_was_done(aws: Aws, service: Service, fault: Fault) -> None:
    service.faults.add("CreateTrainingJob", fault)
    jobs = aws.get_training_jobs(HERE)
    with pytest.raises(Unavailable):
        await jobs.create(make_training_job_request("a-1"))
    # muster does not repeat a request unnoticed.
    assert len(service.list_calls("CreateTrainingJob")) == 1
    assert ("a-1" in service.get_jobs().by_name) == fault.is_done


async def test_what_is_refused_as_too_fast_was_not_done(aws: Aws, service: Service) -> None:
    service.faults.add("CreateTrainingJob", Fault.THROTTLE)
    with pytest.raises(Throttled):
        await aws.get_training_jobs(HERE).create(make_training_job_request("a-1"))
    assert not service.get_jobs().by_name


async def test_the_service_is_down() -> None:
    nowhere = "http://127.0.0.1:9"
    deaf = Aws(AwsEndpoints(sagemaker=nowhere, sts=nowhere))
    with pytest.raises(Unavailable, match="does not answer sagemaker:DescribeTrainingJob in us-west-2"):
        await asyncio.wait_for(deaf.get_training_jobs(HERE).describe("a-1"), 20)
    await deaf.close()


async def test_a_service_that_is_silent_is_not_waited_for_for_ever(
    aws: Aws, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_CONFIG", connection._CONFIG.merge(Config(read_timeout=1.0)))
    service.faults.add("CreateTrainingJob", Fault.SILENCE_AFTER)
    with pytest.raises(Unavailable, match="does not answer sagemaker:CreateTrainingJob"):
        await aws.get_training_jobs(HERE).create(make_training_job_request("a-1"))
    assert "a-1" in service.get_jobs().by_name


async def test_jobs_are_followed_over_real_connections(aws: Aws, service: Service) -> None:
    changed = asyncio.Event()
    names = [f"a-{number}" for number in range(8)]
    for name in names:
        service.get_jobs().create(make_training_job_request(name), service.now())
    watches = [aws.get_poller(HERE).watch(name, service.now(), changed.set) for name in names]
    async with asyncio.timeout(60):
        while any(watch.observation.description is None for watch in watches):
            await changed.wait()
            changed.clear()
    assert {watch.observation.description.name for watch in watches if watch.observation.description} == set(names)


async def test_nothing_is_changed_while_the_lease_is_not_held(url: str, service: Service) -> None:
    leads = [True]
    aws = Aws(AwsEndpoints(sagemaker=url, sts=url), is_change_allowed=lambda: leads[0])
    jobs = aws.get_training_jobs(HERE)
    await jobs.create(make_training_job_request("a-1"))
    leads[0] = False
    for change in (jobs.create(make_training_job_request("a-2")), jobs.stop("a-1"), jobs.delete("a-1")):
        with pytest.raises(Unavailable, match="was not sent: this operator doesn't hold the Lease"):
            await change
    assert (await jobs.describe("a-1")).name == "a-1"
    assert [call.operation for call in service.calls if not call.operation.startswith(("Get", "Describe"))] == [
        "CreateTrainingJob"
    ]
    await aws.close()
