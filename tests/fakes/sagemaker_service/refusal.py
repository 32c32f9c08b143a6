"""The service's error answers, with AWS' messages."""

from __future__ import annotations


class Refusal(Exception):
    """`code` is AWS' error code; all have HTTP status 400 except server errors."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status


def make_validation_refusal(message: str) -> Refusal:
    return Refusal("ValidationException", message)


def make_throttling_refusal() -> Refusal:
    return Refusal("ThrottlingException", "Rate exceeded")


def make_not_found_refusal() -> Refusal:
    # The model has ResourceNotFound, but the service returns this code: aws/aws-sdk#165.
    return make_validation_refusal("Requested resource not found.")


def name_taken(arn: str) -> Refusal:
    return Refusal(
        "ResourceInUse",
        "Training job names must be unique within an AWS account and region, and a training job with this name already "
        f"exists ({arn})",
    )


def make_quota_refusal(instance_type: str, limit: int, used: int, wanted: int) -> Refusal:
    return Refusal(
        "ResourceLimitExceeded",
        f"The account-level service limit '{instance_type} for training job usage' is {limit} Instances, with current "
        f"utilization of {used} Instances and a request delta of {wanted} Instances. Please use AWS Service Quotas to "
        "request an increase for this quota. If AWS Service Quotas is not available, contact AWS support to request an "
        "increase for this quota.",
    )


def make_access_denied_refusal(who: str, action: str, resource: str) -> Refusal:
    return Refusal(
        "AccessDeniedException",
        f"User: {who} is not authorized to perform: {action} on resource: {resource} because no identity-based policy "
        f"allows the {action} action",
    )


def make_expired_token_refusal() -> Refusal:
    return Refusal("ExpiredTokenException", "The security token included in the request is expired")


def make_unknown_caller_refusal() -> Refusal:
    return Refusal("UnrecognizedClientException", "The security token included in the request is invalid.")


def make_server_error() -> Refusal:
    return Refusal("InternalFailure", "The request processing has failed because of an unknown error.", status=500)
