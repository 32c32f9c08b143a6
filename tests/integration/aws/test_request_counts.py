"""Requests to AWS are counted by service, operation and code, for metrics."""

import contextlib

from fakes.sagemaker_service.service import Service
from muster.api.config.sagemaker import AwsEndpoints
from muster.clients.aws.client import Aws
from muster.objects.aws.access import AwsAccess
from muster.objects.aws.errors import AwsError

HERE = AwsAccess("us-west-2")


async def test_each_response_is_counted_by_its_code(aws: Aws, service: Service) -> None:
    del service
    await aws.get_identity(HERE)
    with contextlib.suppress(AwsError):
        await aws.get_training_jobs(HERE).describe("missing")
    assert aws.request_counter.counts() == {
        ("sts", "GetCallerIdentity", "200"): 1,
        ("sagemaker", "DescribeTrainingJob", "400"): 1,
    }


async def test_a_request_without_an_answer_has_no_code_and_one_that_is_not_sent_does_not_count(url: str) -> None:
    nobody = Aws(AwsEndpoints(sagemaker="http://127.0.0.1:1", sts=url), is_change_allowed=lambda: False)
    jobs = nobody.get_training_jobs(HERE)
    with contextlib.suppress(AwsError):
        await jobs.describe("a")
    with contextlib.suppress(AwsError):
        await jobs.stop("a")
    await nobody.close()
    assert nobody.request_counter.counts() == {
        ("sts", "GetCallerIdentity", "200"): 1,
        ("sagemaker", "DescribeTrainingJob", "none"): 1,
    }
