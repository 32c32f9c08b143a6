"""Jobs of namespaces that assume roles, over real connections: the role's owner sees for which namespace it is
assumed.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from functools import partial

import pytest

from fakes.sagemaker_service.service import Service
from muster.api.document import JSON, Document
from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.api.validation.validate import validate
from muster.backends.sagemaker.backend import SageMakerBackend
from muster.backends.sagemaker.log_follower import LogFollower
from muster.backends.sagemaker.targets import get_spec_location
from muster.backends.sagemaker.withdrawal import Withdrawal
from muster.clients.aws.client import Aws
from muster.clients.aws.job_logs import JobLogs
from muster.core.training_job.decide import CreateTrainingJob
from muster.core.training_job.name import build_training_job_name
from muster.objects.aws.access import AwsAccess
from muster.render.sagemaker.request.identity import make_job_tags
from support.training_job_requests import make_training_job_request

ROLE = "arn:aws:iam::444455556666:role/training"


def job(namespace: str) -> Job:
    """Return a job of that namespace in ROLE's account."""
    head: dict[str, JSON] = {"apiVersion": "muster.dev/v1alpha1", "kind": "DistributedTrainingJob"}
    own: JSON = {"role": ROLE, "assumeRoleArn": ROLE, "instanceType": "ml.c5.xlarge", "region": "us-west-2"}
    metadata: JSON = {
        "name": "vit",
        "namespace": namespace,
        "uid": namespace,
        "creationTimestamp": "2026-11-21T04:00:00Z",
    }
    spec: JSON = {"backend": "SageMaker", "launcher": {"perNode": {}}, "image": "i", "command": ["c"], "sagemaker": own}
    return validate(Document({**head, "metadata": metadata, "spec": spec}))


class Prepared:
    """The smallest request that SageMaker accepts; records its region and role."""

    def __init__(self) -> None:
        self.aws_accesses: list[AwsAccess] = []

    async def prepare(self, job: Job, attempt: int, aws_access: AwsAccess) -> Mapping[str, object]:
        self.aws_accesses.append(aws_access)
        tags = [{"Key": key, "Value": value} for key, value in make_job_tags(job, attempt)]
        return make_training_job_request(build_training_job_name(job.metadata, attempt), Tags=tags)


@pytest.fixture
async def prepared() -> Prepared:
    return Prepared()


@pytest.fixture
async def backend(aws: Aws, prepared: Prepared) -> AsyncIterator[SageMakerBackend]:
    news = LogFollower(lambda aws_access: JobLogs(partial(aws.send_request, aws_access, "logs")))
    backend = SageMakerBackend(aws, prepared, news, time.time, lambda _: None)
    yield backend
    backend.close()
    await news.close()


async def test_a_namespace_assumes_a_role_with_its_own_name_and_on_no_other_ones_session(
    backend: SageMakerBackend, prepared: Prepared, service: Service
) -> None:
    service.callers.demanded[ROLE] = frozenset({"muster/team-a"})
    for theirs in (job("team-a"), job("team-b")):
        await backend.observe(theirs, Status(), get_spec_location(theirs), has_finalizer=True)
        await backend.create(theirs, CreateTrainingJob(1), Withdrawal())
        await backend.stop(theirs.metadata, build_training_job_name(theirs.metadata, 1), get_spec_location(theirs))
    assert {call.request.get("ExternalId") for call in service.list_calls("AssumeRole")} == {
        "muster/team-a",
        "muster/team-b",
    }
    assert prepared.aws_accesses == [AwsAccess("us-west-2", ROLE, f"muster/{name}") for name in ("team-a", "team-b")]
    asked = [call.request["TrainingJobName"] for call in service.list_calls("CreateTrainingJob")]
    assert asked == [build_training_job_name(job("team-a").metadata, 1)]
    assert [call.request["TrainingJobName"] for call in service.list_calls("StopTrainingJob")] == asked
    facts = await backend.observe(theirs, Status(), get_spec_location(theirs), has_finalizer=True)
    assert facts.request_failure is not None
    assert "external id muster/team-b" in facts.request_failure.problem.message
