"""Errors of requests to AWS, and what to do about them."""

from __future__ import annotations

from typing import ClassVar


class AwsError(Exception):
    """An error of an AWS request. `message` has complete sentences: the request, the result, and what to do.

    `reason` is a condition's reason. `may_pass` is set if the same request may succeed later without a change.
    """

    reason: ClassVar[str] = "AwsError"
    may_pass: ClassVar[bool] = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class NoCredentials(AwsError):
    """There are no credentials, or AWS does not accept them. AWS did not execute the request."""

    reason = "AwsCredentialsMissing"


class ExpiredCredentials(AwsError):
    """The credentials have expired. AWS did not execute the request. Their source may provide new ones."""

    reason = "AwsCredentialsExpired"
    may_pass = True


class AccessDenied(AwsError):
    """IAM denies the request. `action` is IAM's (`sagemaker:StopTrainingJob`); `resource` is an ARN, "" if unknown."""

    reason = "AwsAccessDenied"

    def __init__(self, message: str, action: str, resource: str) -> None:
        super().__init__(message)
        self.action = action
        self.resource = resource


class Throttled(AwsError):
    """Too many requests of this kind from this account. AWS did not execute the request."""

    reason = "AwsThrottled"
    may_pass = True


class NoCapacity(AwsError):
    """A quota of the account is exhausted, or AWS lacks such instances. AWS did not execute the request."""

    reason = "NoCapacity"
    may_pass = True


class AlreadyExists(AwsError):
    """A training job of this name exists or existed: names can't be reused."""

    reason = "TrainingJobExists"


class NotFound(AwsError):
    """The training job, bucket, object or log stream does not exist."""

    reason = "AwsNotFound"


class Invalid(AwsError):
    """AWS rejects the request as invalid."""

    reason = "RefusedByAws"


class Unavailable(AwsError):
    """No response, or a server error. AWS may have executed the request, or not."""

    reason = "AwsUnavailable"
    may_pass = True
