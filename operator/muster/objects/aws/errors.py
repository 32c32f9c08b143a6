"""The errors of requests to AWS."""

from __future__ import annotations

from typing import ClassVar


class AwsError(Exception):
    """An error of an AWS request. `message` has complete sentences: the request, the result, and what to do.

    `reason` is a condition's reason. `is_retryable` is set if the same request may succeed later without a change.
    """

    reason: ClassVar[str] = "AwsError"
    is_retryable: ClassVar[bool] = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class NoCredentials(AwsError):
    """The credentials are missing, or AWS doesn't accept them. AWS did not execute the request."""

    reason = "AwsCredentialsMissing"


class ExpiredCredentials(AwsError):
    """The credentials have expired. AWS did not execute the request. New credentials may be available."""

    reason = "AwsCredentialsExpired"
    is_retryable = True


class AccessDenied(AwsError):
    """IAM denies the request. `action` is IAM's, such as `sagemaker:StopTrainingJob`; `resource` is an ARN, or ""."""

    reason = "AwsAccessDenied"

    def __init__(self, message: str, action: str, resource: str) -> None:
        super().__init__(message)
        self.action = action
        self.resource = resource


class Throttled(AwsError):
    """Too many requests of this kind from this account. AWS did not execute the request."""

    reason = "AwsThrottled"
    is_retryable = True


class NoCapacity(AwsError):
    """A quota of the account is exhausted, or AWS lacks such instances. AWS did not execute the request."""

    reason = "NoCapacity"
    is_retryable = True


class AlreadyExists(AwsError):
    """A training job with this name exists or existed: names can't be reused."""

    reason = "TrainingJobExists"


class NotFound(AwsError):
    """The training job, bucket, object or log stream does not exist."""

    reason = "AwsNotFound"


class Invalid(AwsError):
    """AWS rejects the request as invalid."""

    reason = "RefusedByAws"


class Unavailable(AwsError):
    """AWS sent no response, or a server error. It may have executed the request."""

    reason = "AwsUnavailable"
    is_retryable = True
