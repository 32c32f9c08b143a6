"""The identity of muster's requests, over real connections."""

import asyncio
import logging
from itertools import pairwise
from pathlib import Path

import pytest
from botocore.client import BaseClient

from fakes.sagemaker_service.callers import ACCOUNT, OWN_ARN
from fakes.sagemaker_service.faults import Fault
from fakes.sagemaker_service.service import Service
from fakes.sagemaker_service.wire import join
from muster.api.config.sagemaker import AwsEndpoints
from muster.clients.aws.client import Aws
from muster.clients.aws.connection import RENEW_SECONDS
from muster.objects.aws.access import AwsAccess
from muster.objects.aws.errors import AccessDenied, ExpiredCredentials, NoCredentials, NotFound, Unavailable
from muster.objects.aws.listing import ListFilter
from support import virtual_time
from support.training_job_requests import make_training_job_request

HERE = AwsAccess("us-west-2")
ROLE = "arn:aws:iam::444455556666:role/training"
THERE = AwsAccess("eu-west-1", ROLE)


async def describe(aws: Aws, aws_access: AwsAccess = HERE) -> None:
    """Request a job that doesn't exist, as an example of any request."""
    with pytest.raises(NotFound):
        await aws.get_training_jobs(aws_access).describe("a-1")


async def test_muster_knows_who_it_is(aws: Aws) -> None:
    mine, theirs = await aws.get_identity(HERE), await aws.get_identity(THERE)
    assert (mine.account, mine.arn) == (ACCOUNT, OWN_ARN)
    assert (theirs.account, theirs.arn) == ("444455556666", "arn:aws:sts::444455556666:assumed-role/training/muster")


async def test_many_who_ask_at_once_who_they_are_cost_one_request(aws: Aws, service: Service) -> None:
    assert len(set(await asyncio.gather(*(aws.get_identity(HERE) for _ in range(20))))) == 1
    assert len(service.list_calls("GetCallerIdentity")) == 1


async def test_a_role_is_assumed_once_and_the_account_is_its_own(aws: Aws, service: Service) -> None:
    jobs = aws.get_training_jobs(THERE)
    arn = await jobs.create(make_training_job_request("a-1"))
    assert arn == "arn:aws:sagemaker:eu-west-1:444455556666:training-job/a-1"
    assert (await jobs.describe("a-1")).arn == arn
    await describe(aws, HERE)
    await describe(aws, AwsAccess("us-west-2", ROLE))
    assumed = service.list_calls("AssumeRole")
    # Once for each region.
    assert [(call.region, call.request["RoleSessionName"]) for call in assumed] == [
        ("eu-west-1", "muster"),
        ("us-west-2", "muster"),
    ]


async def test_a_role_is_assumed_again_before_it_expires(aws: Aws, service: Service) -> None:
    # botocore gets new credentials when less than ten minutes remain.
    service.callers.role_seconds = 300.0
    for _ in range(3):
        await describe(aws, THERE)
    keys = {call.access_key for call in service.list_calls("DescribeTrainingJob")}
    assert len(keys) == len(service.list_calls("AssumeRole")) == 3


async def test_the_error_names_a_role_that_may_not_be_assumed(aws: Aws, service: Service) -> None:
    service.callers.forbidden.add(ROLE)
    with pytest.raises(AccessDenied) as caught:
        await aws.get_training_jobs(THERE).describe("a-1")
    assert (caught.value.action, caught.value.resource) == ("sts:AssumeRole", ROLE)
    service.callers.forbidden.clear()
    await describe(aws, THERE)


async def test_a_role_admits_only_the_principals_of_its_trust_policy(aws: Aws, service: Service) -> None:
    service.callers.demanded[ROLE] = frozenset({"muster/team-a"})
    theirs, others = (AwsAccess("eu-west-1", ROLE, f"muster/{namespace}") for namespace in ("team-a", "team-b"))
    await describe(aws, theirs)
    for aws_access in (others, THERE):
        with pytest.raises(AccessDenied) as caught:
            await aws.get_training_jobs(aws_access).describe("a-1")
        assert (caught.value.action, caught.value.resource) == ("sts:AssumeRole", ROLE)
    await describe(aws, theirs)
    assert [call.request.get("ExternalId") for call in service.list_calls("AssumeRole")] == [
        "muster/team-a",
        "muster/team-b",
        None,
    ]


async def test_a_denied_principal_reads_what_the_trust_policy_needs(aws: Aws, service: Service) -> None:
    service.callers.demanded[ROLE] = frozenset()
    with pytest.raises(AccessDenied, match="in the role's trust policy for the external id muster/team-b"):
        await aws.get_training_jobs(AwsAccess("eu-west-1", ROLE, "muster/team-b")).describe("a-1")


async def test_credentials_that_come_late_are_found(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    aws = Aws(AwsEndpoints(sagemaker=url, sts=url))
    for aws_access in (HERE, THERE):
        with pytest.raises(NoCredentials, match="There are no AWS credentials for"):
            await aws.get_training_jobs(aws_access).describe("a-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIALATE")
    await describe(aws, HERE)
    await describe(aws, THERE)
    await aws.close()


@pytest.mark.parametrize(
    ("fault", "error"), [(Fault.EXPIRED, ExpiredCredentials), (Fault.UNKNOWN_CALLER, NoCredentials)]
)
async def test_credentials_that_were_replaced_are_read_again(
    url: str,
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    fault: Fault,
    error: type[ExpiredCredentials | NoCredentials],
) -> None:
    profile = tmp_path / "credentials"
    profile.write_text("[default]\naws_access_key_id = AKIAOLD\naws_secret_access_key = old\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(profile))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    aws = Aws(AwsEndpoints(sagemaker=url, sts=url))
    await describe(aws)
    profile.write_text("[default]\naws_access_key_id = AKIANEW\naws_secret_access_key = new\n")
    service.faults.add("DescribeTrainingJob", fault)
    with pytest.raises(error):
        await aws.get_training_jobs(HERE).describe("a-1")
    await describe(aws)
    keys = [call.access_key for call in service.list_calls("DescribeTrainingJob")]
    assert keys == ["AKIAOLD", "AKIAOLD", "AKIANEW"]
    await aws.close()


def test_credentials_that_are_no_good_are_read_again_every_few_seconds(service: Service) -> None:
    service.faults.chance = lambda _: Fault.EXPIRED
    aws = Aws()
    join(aws, HERE, service)
    connection = aws.get_connection(HERE)

    async def refused() -> BaseClient:
        with pytest.raises(ExpiredCredentials):
            await connection.send_request("sagemaker", "DescribeTrainingJob", {"TrainingJobName": "a-1"})
        return connection.client("sagemaker")

    async def life() -> None:
        first = connection.client("sagemaker")
        second = await refused()
        assert first is not second
        assert second is await refused()
        await asyncio.sleep(RENEW_SECONDS)
        assert second is not await refused()
        await aws.close()

    virtual_time.run(life(), lambda: 0.0)


async def test_roles_of_one_account_share_its_pace(aws: Aws, service: Service) -> None:
    aws_accesses = [AwsAccess("us-west-2", f"arn:aws:iam::444455556666:role/{name}") for name in ("a", "b")]
    await asyncio.gather(
        *(aws.get_training_jobs(aws_access).list_page(ListFilter()) for aws_access in aws_accesses * 3)
    )
    times = [call.at for call in service.list_calls("ListTrainingJobs")]
    assert len(times) == 6
    assert all((after - before).total_seconds() >= 0.5 for before, after in pairwise(times))


async def test_accounts_have_paces_of_their_own(aws: Aws, service: Service) -> None:
    aws_accesses = [THERE, AwsAccess(THERE.region, "arn:aws:iam::777788889999:role/training")]
    # The credentials are cached, so that only the rate limit delays the request.
    await asyncio.gather(*(aws.get_identity(aws_access) for aws_access in aws_accesses))
    await asyncio.gather(
        *(aws.get_training_jobs(aws_access).list_page(ListFilter()) for aws_access in aws_accesses * 4)
    )
    calls = service.list_calls("ListTrainingJobs")
    assert len(calls) == 8
    between = [after.at - before.at for before, after in pairwise(calls) if before.account != after.account]
    assert min(between).total_seconds() < 0.5
    for account in ("444455556666", "777788889999"):
        times = [call.at for call in calls if call.account == account]
        assert all((after - before).total_seconds() >= 0.5 for before, after in pairwise(times))


async def test_who_cannot_reach_sts_may_still_ask_sagemaker(url: str) -> None:
    aws = Aws(AwsEndpoints(sagemaker=url, sts="http://127.0.0.1:9"))
    await describe(aws)
    with pytest.raises(Unavailable):
        await aws.get_identity(HERE)
    await aws.close()


async def test_secrets_are_neither_logged_nor_shown(
    aws: Aws, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        await describe(aws, HERE)
        await describe(aws, THERE)
        service.faults.add("DescribeTrainingJob", Fault.UNKNOWN_CALLER)
        with pytest.raises(NoCredentials) as caught:
            await aws.get_training_jobs(THERE).describe("a-1")
    key = service.list_calls("DescribeTrainingJob")[-1].access_key
    shown = " ".join([caplog.text, str(caught.value), repr(caught.value), repr(vars(aws))])
    shown += " ".join(repr(vars(aws.get_connection(aws_access))) for aws_access in (HERE, THERE))
    assert "DescribeTrainingJob" in str(caught.value)
    for secret in ("example-secret", f"secret-of-{key}", f"token-of-{key}"):
        assert secret not in shown
