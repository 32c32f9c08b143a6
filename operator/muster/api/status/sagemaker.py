"""The part of the status for jobs on Amazon SageMaker: training jobs and billed time."""

from typing import Annotated

from pydantic import Field

from muster.api.spec.model import Model

MAX_HISTORY = 32
"""Limit of secondary statuses: a job on spot instances can repeat them many times."""

MAX_EARLIER = 16
"""Limit of earlier training jobs: SageMaker's console lists all of them."""

MAX_ATTEMPTS = 1_000_000

Time = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")]
"""A time that controls the next request to SageMaker; its format is therefore strict."""


class SecondaryStatus(Model):
    """A secondary status of the SageMaker training job."""

    status: str = Field(description="SageMaker's status: Starting, Downloading, Training, Uploading, ...")
    started_at: str = Field(description="When it began (RFC 3339).")
    ended_at: str | None = Field(default=None, description="When it ended (RFC 3339); unset: it lasts.")
    message: str = Field(default="", description="SageMaker's message.")


class EarlierTrainingJob(Model):
    """A previous training job of this job."""

    attempt: int = Field(description="Its number.")
    training_job_name: str = Field(description="Its name.")
    status: str = Field(description="Its final status in SageMaker: Failed, Stopped, ...")
    reason: str = Field(description="Why muster started another one, as one CamelCase word.")
    message: str = Field(default="", description="Why, as a sentence.")
    billable_seconds: int | None = Field(default=None, description="Seconds that each of its instances is billed for.")


class Retry(Model):
    """A request for instances that SageMaker could not fulfil, and its next retry."""

    attempt: int = Field(description="The number of the training job.", ge=1, le=MAX_ATTEMPTS)
    reason: str = Field(description="Why SageMaker refused it, as one CamelCase word.")
    message: str = Field(description="SageMaker's message.")
    tries: int = Field(description="The number of consecutive attempts.", ge=1, le=MAX_ATTEMPTS)
    until: Time = Field(description="When muster retries (RFC 3339).")


class SageMakerStatus(Model):
    """The job on Amazon SageMaker."""

    training_job_name: str = Field(description="The current training job's name.")
    attempt: int = Field(description="Its number: how many training jobs the job has had.", ge=1, le=MAX_ATTEMPTS)
    restarts: int = Field(
        default=0, description="How many training jobs count against failurePolicy.maxRestarts.", ge=0, le=MAX_ATTEMPTS
    )
    region: str = Field(description="Its AWS region.")
    assume_role_arn: str | None = Field(
        default=None, description="The role that muster assumes in its account; unset: the operator's role."
    )
    tried_at: Time = Field(description="When muster last asked SageMaker to create it (RFC 3339).")
    retry: Retry | None = Field(default=None, description="Set while a training job waits for instances.")
    arn: str | None = Field(default=None, description="Its ARN; unset until it exists.")
    status: str | None = Field(default=None, description="SageMaker's status: InProgress, Stopping, Completed, ...")
    secondary_status: str | None = Field(
        default=None, description="SageMaker's secondary status: Starting, Training, ..."
    )
    status_message: str | None = Field(default=None, description="SageMaker's message.")
    failure_reason: str | None = Field(default=None, description="SageMaker's failure reason.")
    history: Annotated[tuple[SecondaryStatus, ...], Field(max_length=MAX_HISTORY)] = Field(
        default=(), description="Its secondary statuses with their times, oldest first: at most the last 32."
    )
    billable_seconds: int | None = Field(
        default=None, description="Seconds that each of its instances is billed for; unset until SageMaker reports it."
    )
    training_seconds: int | None = Field(default=None, description="Seconds that it trained.")
    image: str | None = Field(default=None, description="The image that it runs.")
    instance_type: str | None = Field(default=None, description="Its instance type; unset if it has several groups.")
    instance_count: int | None = Field(default=None, description="How many instances, of all groups together.")
    console_url: str | None = Field(default=None, description="Its page in the AWS console.")
    earlier: Annotated[tuple[EarlierTrainingJob, ...], Field(max_length=MAX_EARLIER)] = Field(
        default=(), description="Previous training jobs, oldest first: at most the last 16."
    )


class BackendStatus(Model):
    """The part of the status that belongs to one backend."""

    sagemaker: SageMakerStatus | None = Field(default=None, description="The job on Amazon SageMaker.")
