"""The types of `status.backend.sagemaker`: the job's training jobs and their billed time."""

from typing import Annotated

from pydantic import Field

from muster.api.spec.model import Model

MAX_HISTORY = 32
"""The maximum number of secondary statuses: on spot instances, a job can repeat them many times."""

MAX_EARLIER_JOBS = 16
"""The maximum number of earlier training jobs. SageMaker's console lists all of them."""

MAX_ATTEMPTS = 1_000_000

Time = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")]
"""A time that determines the next request to SageMaker, so its format is strict."""


class SecondaryStatus(Model):
    """A secondary status of the SageMaker training job."""

    status: str = Field(description="SageMaker's status: Starting, Downloading, Training, Uploading, ...")
    started_at: str = Field(description="The time when this status began (RFC 3339).")
    ended_at: str | None = Field(
        default=None, description="The time when this status ended (RFC 3339); unset for the current status."
    )
    message: str = Field(default="", description="SageMaker's message.")


class EarlierTrainingJob(Model):
    """A previous training job of this job."""

    attempt: int = Field(description="The attempt's number.")
    training_job_name: str = Field(description="The training job's name.")
    status: str = Field(description="The training job's final status: Failed, Stopped, ...")
    reason: str = Field(description="The reason why muster started another training job, as one CamelCase word.")
    message: str = Field(default="", description="The reason as a sentence.")
    billable_seconds: int | None = Field(default=None, description="The seconds for which AWS bills each instance.")


class Retry(Model):
    """A request for instances that SageMaker could not fulfil, and the time of the next retry."""

    attempt: int = Field(description="The number of the attempt.", ge=1, le=MAX_ATTEMPTS)
    reason: str = Field(description="The reason why SageMaker rejected the request, as one CamelCase word.")
    message: str = Field(description="SageMaker's message.")
    tries: int = Field(description="The number of consecutive rejected requests.", ge=1, le=MAX_ATTEMPTS)
    until: Time = Field(description="The time of the next request (RFC 3339).")


class SageMakerStatus(Model):
    """The job on Amazon SageMaker."""

    training_job_name: str = Field(description="The current training job's name.")
    attempt: int = Field(
        description="The attempt's number: muster has created this many training jobs for the job.",
        ge=1,
        le=MAX_ATTEMPTS,
    )
    restarts: int = Field(
        default=0,
        description="The number of restarts that count against failurePolicy.maxRestarts.",
        ge=0,
        le=MAX_ATTEMPTS,
    )
    region: str = Field(description="The training job's AWS region.")
    assume_role_arn: str | None = Field(
        default=None, description="The role that muster assumes for requests; unset if muster uses the operator's role."
    )
    tried_at: Time = Field(description="The time of muster's last request to create the training job (RFC 3339).")
    retry: Retry | None = Field(default=None, description="The next request; set while SageMaker lacks instances.")
    arn: str | None = Field(default=None, description="The training job's ARN; unset until the training job exists.")
    status: str | None = Field(default=None, description="SageMaker's status: InProgress, Stopping, Completed, ...")
    secondary_status: str | None = Field(
        default=None, description="SageMaker's secondary status: Starting, Training, ..."
    )
    status_message: str | None = Field(default=None, description="SageMaker's message.")
    failure_reason: str | None = Field(default=None, description="SageMaker's failure reason.")
    history: Annotated[tuple[SecondaryStatus, ...], Field(max_length=MAX_HISTORY)] = Field(
        default=(), description="The secondary statuses with their times: at most the last 32, oldest first."
    )
    billable_seconds: int | None = Field(
        default=None, description="The seconds for which AWS bills each instance; unset until SageMaker reports them."
    )
    training_seconds: int | None = Field(
        default=None, description="The training time in seconds, as SageMaker reports it."
    )
    image: str | None = Field(default=None, description="The training job's image.")
    instance_type: str | None = Field(default=None, description="The instance type; unset for several instance groups.")
    instance_count: int | None = Field(default=None, description="The number of instances of all groups.")
    console_url: str | None = Field(default=None, description="The URL of the training job in the AWS console.")
    earlier: Annotated[tuple[EarlierTrainingJob, ...], Field(max_length=MAX_EARLIER_JOBS)] = Field(
        default=(), description="The previous training jobs: at most the last 16, oldest first."
    )


class BackendStatus(Model):
    """The status of the job in its backend."""

    sagemaker: SageMakerStatus | None = Field(default=None, description="The job on Amazon SageMaker.")
