"""The documented policy allows muster's requests, needs each of its actions, and an error names a missing one."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.model import OperationModel

from fakes.fake_credentials import use_fake_credentials
from fakes.s3_server import reset, s3_server
from fakes.sagemaker_service.callers import ACCOUNT, OWN_ARN
from fakes.sagemaker_service.documented import read_documented_policy
from fakes.sagemaker_service.policy import Right
from fakes.sagemaker_service.script import make_completing_script
from fakes.sagemaker_service.service import Service
from muster.api.config.sagemaker import AwsEndpoints
from muster.clients.aws.client import Aws
from muster.clients.aws.job_logs import LOG_GROUP, JobLogs, LogPosition
from muster.objects.aws.access import AwsAccess
from muster.objects.aws.errors import AccessDenied, NotFound
from muster.objects.aws.listing import ListFilter
from muster_dev.paths import ROOT
from support.training_job_requests import make_training_job_request

if TYPE_CHECKING:
    from mypy_boto3_logs import CloudWatchLogsClient
    from mypy_boto3_s3 import S3Client

HERE = AwsAccess("us-west-2")
ROLE = "arn:aws:iam::444455556666:role/training"
BUCKET = f"sagemaker-us-west-2-{ACCOUNT}"
STREAM = "a-1/algo-1-1700000000"
ASKED = re.compile(r'(?:send_request|_request_s3)\(\s*(?:aws_access,\s*)?(?:"[a-z0-9]+",\s*)?"([A-Z]\w+)"')
RIGHTLESS = "GetCallerIdentity"
NAMED_OTHERWISE = {"HeadObject": "GetObject"}
"""Operations whose IAM action has another name."""


@dataclass
class Recorder:
    """The requests that botocore sends, including failed requests."""

    asked: list[tuple[str, str, Mapping[str, object]]] = field(default_factory=list)

    def listen(self, aws: Aws, aws_access: AwsAccess) -> None:
        connection = aws.get_connection(aws_access)
        for service in ("sagemaker", "logs", "s3", "sts"):
            connection.client(service).meta.events.register("before-parameter-build", self._note)

    def _note(self, params: Mapping[str, object], model: OperationModel, **_: object) -> None:
        self.asked.append((model.service_model.service_name, model.name, dict(params)))

    def rights(self) -> Iterator[Right]:
        """Yield the permissions of requests to services other than SageMaker, whose fake checks its own."""
        for service, operation, params in self.asked:
            if service == "s3":
                action = NAMED_OTHERWISE.get(operation, operation)
                yield Right(f"s3:{action}", f"arn:aws:s3:::{params['Bucket']}/{params['Key']}")
            if service == "logs":
                group = f"arn:aws:logs:us-west-2:{ACCOUNT}:log-group:{params['logGroupName']}"
                stream = f"{group}:log-stream:{params.get('logStreamName', '')}"
                yield Right(f"logs:{operation}", stream)


@dataclass(frozen=True)
class Elsewhere:
    """An S3 and a CloudWatch Logs, and clients of them with all permissions."""

    url: str
    s3: S3Client
    logs: CloudWatchLogsClient


@pytest.fixture(scope="module")
def elsewhere_server() -> Iterator[Elsewhere]:
    with s3_server() as url, pytest.MonkeyPatch.context() as patch:
        use_fake_credentials(patch)
        s3 = boto3.client("s3", endpoint_url=url, region_name=HERE.region)
        logs = boto3.client("logs", endpoint_url=url, region_name=HERE.region)
        yield Elsewhere(url, s3, logs)
        s3.close()
        logs.close()


@pytest.fixture
def elsewhere(elsewhere_server: Elsewhere) -> str:
    """Return the URL of an S3 and a CloudWatch Logs with a bucket and a log."""
    url, logs = elsewhere_server.url, elsewhere_server.logs
    reset(url)
    elsewhere_server.s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    logs.create_log_group(logGroupName=LOG_GROUP)
    logs.create_log_stream(logGroupName=LOG_GROUP, logStreamName=STREAM)
    now = int(time.time() * 1000)
    logs.put_log_events(
        logGroupName=LOG_GROUP, logStreamName=STREAM, logEvents=[{"timestamp": now, "message": "[muster] {}"}]
    )
    return url


@pytest.fixture
async def guarded(service: Service, url: str, elsewhere: str) -> AsyncIterator[Aws]:
    """Yield an operator with only the documented permissions."""
    service.policy = read_documented_policy()
    aws = Aws(AwsEndpoints(sagemaker=url, sts=url, s3=elsewhere, logs=elsewhere))
    yield aws
    await aws.close()


async def everything(aws: Aws, service: Service) -> None:
    """All requests of muster."""
    service.get_jobs().script = lambda _request: make_completing_script(3600)
    jobs = aws.get_training_jobs(HERE)
    code = {"Bucket": BUCKET, "Key": "source/0a1b/sourcedir.tar.gz"}
    with pytest.raises(NotFound):
        await aws.send_request(HERE, "s3", "HeadObject", code)
    await aws.send_request(HERE, "s3", "PutObject", {**code, "Body": b"code"})
    arn = await jobs.create(make_training_job_request("a-1"))
    await jobs.describe("a-1")
    await jobs.list_tags(arn)
    await jobs.list_page(ListFilter())
    logs = JobLogs(lambda operation, request: aws.send_request(HERE, "logs", operation, request))
    events, _ = await logs.read_new_lines("a-1", "[muster]", LogPosition(0))
    assert [event.text for event in events] == ["[muster] {}"]
    assert await logs.read_last_lines("a-1")
    await jobs.stop("a-1")
    service.get_jobs().by_name["a-1"].course.turn((make_completing_script()[-1],), service.now())
    await jobs.delete("a-1")
    assert (await aws.get_identity(AwsAccess(HERE.region, ROLE))).account == "444455556666"


async def test_the_policy_allows_all_that_muster_asks_for_and_nothing_else(guarded: Aws, service: Service) -> None:
    policy = read_documented_policy()
    recorder = Recorder()
    recorder.listen(guarded, HERE)
    await everything(guarded, service)
    refused = [right for right in recorder.rights() if not policy.allows(right)]
    assert refused == []
    assert policy.allows(Right("sts:AssumeRole", ROLE))
    asked = {f"{service}:{NAMED_OTHERWISE.get(name, name)}" for service, name, _ in recorder.asked}
    asked -= {f"sts:{RIGHTLESS}"}
    # No request has these names.
    implied = {"sagemaker:AddTags", "iam:PassRole", "sts:AssumeRole"}
    assert policy.list_actions() == asked | implied


def test_everything_that_the_code_asks_for_is_tried_here() -> None:
    files = [
        file
        for folder in ("clients/aws", "backends/sagemaker")
        for file in (ROOT / "operator/muster" / folder).rglob("*.py")
    ]
    asked = (operation for file in files for operation in ASKED.findall(file.read_text(encoding="utf-8")))
    result = {NAMED_OTHERWISE.get(operation, operation) for operation in asked}
    actions = {action.partition(":")[2] for action in read_documented_policy().list_actions()}
    assert result - {RIGHTLESS} == actions - {"AddTags", "PassRole", "AssumeRole"}


@pytest.mark.parametrize(
    ("missing", "resource"),
    [
        ("sagemaker:CreateTrainingJob", f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:training-job/a-1"),
        ("sagemaker:AddTags", f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:training-job/a-1"),
        ("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/SageMakerRole"),
        ("sagemaker:ListTrainingJobs", "*"),
        ("sagemaker:DescribeTrainingJob", f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:training-job/a-1"),
        ("sagemaker:ListTags", f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:training-job/a-1"),
        ("sagemaker:StopTrainingJob", f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:training-job/a-1"),
        ("sagemaker:DeleteTrainingJob", f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:training-job/a-1"),
    ],
)
async def test_the_error_names_a_missing_action_and_its_resource(
    guarded: Aws, service: Service, missing: str, resource: str
) -> None:
    service.policy = read_documented_policy().remove_action(missing)
    with pytest.raises(AccessDenied) as caught:
        await everything(guarded, service)
    assert (caught.value.action, caught.value.resource) == (missing, resource)
    assert caught.value.message.startswith(
        f"{OWN_ARN} is not allowed to do {missing} on {resource}: no identity-based policy"
    )


async def test_muster_may_end_no_job_but_its_own(guarded: Aws, service: Service) -> None:
    service.get_jobs().create(make_training_job_request("theirs", Tags=[]), service.now())
    with pytest.raises(AccessDenied, match="sagemaker:StopTrainingJob"):
        await guarded.get_training_jobs(HERE).stop("theirs")
    with pytest.raises(AccessDenied, match="sagemaker:CreateTrainingJob"):
        await guarded.get_training_jobs(HERE).create(make_training_job_request("mine", Tags=[]))
    with pytest.raises(AccessDenied, match="iam:PassRole on arn:aws:iam::111122223333:role/Admin"):
        await guarded.get_training_jobs(HERE).create(
            make_training_job_request("mine", RoleArn="arn:aws:iam::111122223333:role/Admin")
        )
