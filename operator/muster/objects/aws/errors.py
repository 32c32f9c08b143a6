"""What AWS says when it doesn't do what it was asked, and what to do about it."""

from __future__ import annotations

from typing import ClassVar


class AwsError(Exception):
    """`message` is one or more sentences for a condition: what was asked, what came of it, what to do.

    `reason` is a condition's. `may_pass`: the same request may be carried out later with nothing changed by anybody.
    """

    reason: ClassVar[str] = "AwsError"
    may_pass: ClassVar[bool] = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class NoCredentials(AwsError):
    """There are none, or none that AWS knows. Nothing was carried out."""

    reason = "AwsCredentialsMissing"


class ExpiredCredentials(AwsError):
    """They were good once. Nothing was carried out. What hands them out may bring new ones."""

    reason = "AwsCredentialsExpired"
    may_pass = True


class AccessDenied(AwsError):
    """Who asked may not. `action` is IAM's (`sagemaker:StopTrainingJob`); `resource` is an ARN, or "" if not told."""

    reason = "AwsAccessDenied"

    def __init__(self, message: str, action: str, resource: str) -> None:
        super().__init__(message)
        self.action = action
        self.resource = resource


class Throttled(AwsError):
    """Too many requests of this kind from this account. Nothing was carried out."""

    reason = "AwsThrottled"
    may_pass = True


class NoCapacity(AwsError):
    """A quota of the account is used up, or AWS has no such instances now. Nothing was carried out."""

    reason = "NoCapacity"
    may_pass = True


class AlreadyExists(AwsError):
    """A training job of this name is or was there: names are never free again."""

    reason = "TrainingJobExists"


class NotFound(AwsError):
    """There is no such training job, bucket, object or log stream."""

    reason = "AwsNotFound"


class Invalid(AwsError):
    """AWS refuses the request as it is."""

    reason = "RefusedByAws"


class Unavailable(AwsError):
    """No answer, or one that says that AWS failed. The request may have been carried out, or not."""

    reason = "AwsUnavailable"
    may_pass = True
