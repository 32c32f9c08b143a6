"""`muster logs` of a job on SageMaker, which has no pods."""

import pytest

from muster.api.status.sagemaker import BackendStatus, SageMakerStatus
from muster.api.status.status import Status
from muster.cli.board.observed_job import ObservedJob
from muster.cli.errors import BadInput
from muster.cli.jobs.logs import reject_training_job

TRAINING = SageMakerStatus(
    training_job_name="vit-0a1b2c3d4e-2", attempt=2, region="us-west-2", tried_at="2026-11-21T05:00:00Z"
)


def observed_job(status: Status) -> ObservedJob:
    return ObservedJob(name="vit", uid="u", generation=1, created_at=None, status=status)


def test_the_message_has_the_command_that_reads_its_log() -> None:
    with pytest.raises(BadInput) as refused:
        reject_training_job(observed_job(Status(backend=BackendStatus(sagemaker=TRAINING))))
    assert (
        "aws logs tail /aws/sagemaker/TrainingJobs --log-stream-name-prefix vit-0a1b2c3d4e-2/ --region us-west-2"
        in str(refused.value)
    )


@pytest.mark.parametrize("status", [Status(), Status(backend=BackendStatus())])
def test_a_job_of_the_cluster_is_read_from_its_pods(status: Status) -> None:
    reject_training_job(observed_job(status))
