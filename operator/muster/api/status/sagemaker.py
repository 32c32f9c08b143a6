"""The part of the status that only a job on Amazon SageMaker has: its training jobs, and what they cost."""

from typing import Annotated

from pydantic import Field

from muster.api.spec.model import Model

MAX_HISTORY = 32
"""Secondary statuses in the status: a job on spot instances goes through the same ones again and again."""

MAX_EARLIER = 16
"""Earlier training jobs of a job in its status: what SageMaker keeps of the others is in its console."""

MAX_ATTEMPTS = 1_000_000

Time = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")]
"""What decides when SageMaker is asked again."""


class SecondaryStatus(Model):
    """One of the secondary statuses that SageMaker's training job went through."""

    status: str = Field(description="SageMaker's word: Starting, Downloading, Training, Uploading, ...")
    started_at: str = Field(description="Since when (RFC 3339).")
    ended_at: str | None = Field(default=None, description="Until when (RFC 3339); unset: until now.")
    message: str = Field(default="", description="What SageMaker said about it.")


class EarlierTrainingJob(Model):
    """A training job that this one followed."""

    attempt: int = Field(description="Its number.")
    training_job_name: str = Field(description="Its name.")
    status: str = Field(description="How it ended, in SageMaker's word: Failed, Stopped, ...")
    reason: str = Field(description="Why another one followed, as one CamelCase word.")
    message: str = Field(default="", description="Why, as a sentence.")
    billable_seconds: int | None = Field(default=None, description="Seconds that each of its instances is billed for.")


class Retry(Model):
    """What SageMaker had no room for, and when it is asked again."""

    attempt: int = Field(description="Which training job it was about.", ge=1, le=MAX_ATTEMPTS)
    reason: str = Field(description="Why not, as one CamelCase word.")
    message: str = Field(description="What SageMaker said.")
    tries: int = Field(description="How often in a row.", ge=1, le=MAX_ATTEMPTS)
    until: Time = Field(description="When it is asked again (RFC 3339).")


class SageMakerStatus(Model):
    """The job on Amazon SageMaker."""

    training_job_name: str = Field(description="The present training job's name.")
    attempt: int = Field(description="Its number: how many the job has had.", ge=1, le=MAX_ATTEMPTS)
    restarts: int = Field(
        default=0, description="How many of them count against failurePolicy.maxRestarts.", ge=0, le=MAX_ATTEMPTS
    )
    region: str = Field(description="Its AWS region.")
    assume_role_arn: str | None = Field(
        default=None, description="The role by which muster reaches its account; unset: muster's own."
    )
    tried_at: Time = Field(description="When SageMaker was last asked to create it (RFC 3339).")
    retry: Retry | None = Field(default=None, description="Set while a training job waits for instances.")
    arn: str | None = Field(default=None, description="Its ARN; unset until it exists.")
    status: str | None = Field(default=None, description="SageMaker's word: InProgress, Stopping, Completed, ...")
    secondary_status: str | None = Field(default=None, description="SageMaker's word: Starting, Training, ...")
    status_message: str | None = Field(default=None, description="What SageMaker says about it.")
    failure_reason: str | None = Field(default=None, description="Why it failed, as SageMaker says.")
    history: Annotated[tuple[SecondaryStatus, ...], Field(max_length=MAX_HISTORY)] = Field(
        default=(), description="Its secondary statuses with their times, oldest first: at most the last 32."
    )
    billable_seconds: int | None = Field(
        default=None, description="Seconds that each of its instances is billed for; unset until SageMaker says."
    )
    training_seconds: int | None = Field(default=None, description="Seconds that it trained.")
    image: str | None = Field(default=None, description="The image that it runs.")
    instance_type: str | None = Field(default=None, description="Its instances; unset where it has several groups.")
    instance_count: int | None = Field(default=None, description="How many instances, of all groups together.")
    console_url: str | None = Field(default=None, description="Its page in the AWS console.")
    earlier: Annotated[tuple[EarlierTrainingJob, ...], Field(max_length=MAX_EARLIER)] = Field(
        default=(), description="Those before it, oldest first: at most the last 16."
    )


class BackendStatus(Model):
    """What only one backend knows of."""

    sagemaker: SageMakerStatus | None = Field(default=None, description="The job on Amazon SageMaker.")
