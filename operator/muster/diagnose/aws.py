"""Translate botocore's errors to `AwsError`s. Pure.

Messages quote AWS' text, unless it may contain parts of the request, such as credentials.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from botocore.exceptions import (
    ClientError,
    CredentialRetrievalError,
    InvalidRegionError,
    LoginError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
    ProfileNotFound,
    SSOError,
    TokenRetrievalError,
    UnknownEndpointError,
)

from muster.objects.aws.access import AwsAccess
from muster.objects.aws.errors import (
    AccessDenied,
    AlreadyExists,
    AwsError,
    ExpiredCredentials,
    Invalid,
    NoCapacity,
    NoCredentials,
    NotFound,
    Throttled,
    Unavailable,
)

MAX_TEXT_CHARS = 600

_THROTTLED = frozenset(
    {
        "BandwidthLimitExceeded",
        "EC2ThrottledException",
        "PriorRequestNotComplete",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
"""botocore's error codes for throttling (retries/standard.py), without those of services that muster doesn't use."""

_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"})

_UNKNOWN_CALLER = frozenset(
    {
        "AuthFailure",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidIdentityToken",
        "InvalidSignatureException",
        "InvalidToken",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
"""The error codes about the caller's identity. Don't show their messages, because they may quote the request."""

_DENIED = frozenset({"AccessDenied", "AccessDeniedException", "403", "Forbidden", "UnauthorizedOperation"})
_MISSING = frozenset(
    {
        "404",
        "NoSuchBucket",
        "NoSuchKey",
        "NoSuchUpload",
        "NotFound",
        "ResourceNotFound",
        "ResourceNotFoundException",
    }
)
_STS_OPERATIONS = frozenset({"AssumeRole", "AssumeRoleWithWebIdentity", "GetCallerIdentity"})
_MISSING_TEXTS = ("Requested resource not found", "Could not find")
"""SageMaker reports a missing resource as a ValidationException that starts with one of these (aws/aws-sdk#165)."""

_LONG_VALUE = re.compile(r"(?<=Value )'(.{40}).+?'(?= at ')")
"""A long value in a message: SageMaker quotes a whole hyperparameter, which may have 2,500 characters."""

_UNKNOWN_DENIAL = "IAM's policies of that identity, of the organisation or of the resource forbid it."

_NO_CREDENTIALS_RESPONSE = "Received error when attempting to retrieve container metadata"
"""botocore's message if the EKS Pod Identity agent doesn't respond. The credentials may still be valid."""

_DENIAL = re.compile(r"User: (?P<who>\S+) is not authorized to perform: (?P<action>[\w-]+:\w+)(?P<rest>.*)", re.DOTALL)
_ON_RESOURCE = re.compile(r"\s*on resource: (?P<resource>\S+)(?P<why>.*)", re.DOTALL)
_ACTIONS: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("s3", "HeadObject"): "s3:GetObject",
        ("s3", "HeadBucket"): "s3:ListBucket",
        ("s3", "ListObjectsV2"): "s3:ListBucket",
        ("s3", "CreateMultipartUpload"): "s3:PutObject",
        ("s3", "UploadPart"): "s3:PutObject",
        ("s3", "CompleteMultipartUpload"): "s3:PutObject",
    }
)
"""The IAM actions whose names differ from the operations' (Service Authorization Reference, Amazon S3)."""


@dataclass(frozen=True)
class _Refusal:
    """An error response of AWS to `operation`."""

    service: str
    operation: str
    aws_access: AwsAccess
    code: str
    text: str
    status: int

    @property
    def action(self) -> str:
        """The IAM action of the operation."""
        return get_iam_action(self.service, self.operation)

    @property
    def request(self) -> str:
        return f"{self.action} in {self.aws_access}"


def get_iam_action(service: str, operation: str) -> str:
    """Return the IAM action for an operation."""
    return _ACTIONS.get((service, operation), f"{service}:{operation}")


def translate_error(error: Exception, service: str, operation: str, aws_access: AwsAccess) -> AwsError:
    """Translate an exception of botocore; `operation` is the requested operation."""
    if not isinstance(error, ClientError):
        return _translate_local_error(error, get_iam_action(service, operation), aws_access)
    details = error.response.get("Error", {})
    # The failed operation may be AssumeRole, which botocore sends before the requested operation.
    failed_operation = error.operation_name
    refusal = _Refusal(
        service="sts" if failed_operation in _STS_OPERATIONS else service,
        operation=failed_operation,
        aws_access=aws_access,
        code=str(details.get("Code", "")),
        text=_shorten(str(details.get("Message", ""))),
        status=int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)),
    )
    return next(result for check in _CHECKS if (result := check(refusal)) is not None)


def _check_throttling(refusal: _Refusal) -> AwsError | None:
    if refusal.code not in _THROTTLED:
        return None
    return Throttled(f"AWS throttles {refusal.request}: the account sends too many requests.")


def _check_expired_credentials(refusal: _Refusal) -> AwsError | None:
    if refusal.code not in _EXPIRED:
        return None
    return ExpiredCredentials(
        f"The operator's AWS credentials have expired: {refusal.request} was refused with {refusal.code}. "
        "Check that their source (IRSA, Pod Identity, profile) still provides new ones."
    )


def _check_unknown_caller(refusal: _Refusal) -> AwsError | None:
    if refusal.code not in _UNKNOWN_CALLER:
        return None
    return NoCredentials(
        f"AWS doesn't accept the operator's credentials: {refusal.request} was refused with {refusal.code}. "
        "They are wrong, deleted or for another partition, or this machine's clock is off by minutes."
    )


def _check_denial(refusal: _Refusal) -> AwsError | None:
    match = _DENIAL.search(refusal.text)
    if match is None and refusal.code not in _DENIED:
        return None
    if match is None:
        why = f" AWS says: {refusal.text}" if refusal.text else ""
        return AccessDenied(f"{refusal.request} is not allowed.{why or ' ' + _UNKNOWN_DENIAL}", refusal.action, "")
    # The denied action may be another one: creating a training job also needs iam:PassRole.
    resource_match = _ON_RESOURCE.match(match["rest"])
    resource = resource_match["resource"].rstrip(".,") if resource_match else ""
    why = (resource_match["why"] if resource_match else match["rest"]).strip().rstrip(".").removeprefix("because ")
    return AccessDenied(
        f"{match['who']} is not allowed to do {match['action']}{f' on {resource}' if resource else ''}"
        f"{f': {why}' if why else ''}. Allow it with IAM{_describe_trust_policy(match['action'], refusal.aws_access)}.",
        match["action"],
        resource,
    )


def _describe_trust_policy(action: str, aws_access: AwsAccess) -> str:
    # STS sends the same message for a wrong principal and for a wrong external id.
    needs_trust = action == "sts:AssumeRole" and aws_access.external_id
    return f", and in the role's trust policy for the external id {aws_access.external_id}" if needs_trust else ""


def _check_capacity(refusal: _Refusal) -> AwsError | None:
    if refusal.code == "ResourceLimitExceeded" or refusal.code.startswith("Insufficient"):
        return NoCapacity(f"SageMaker has no capacity for the training job in {refusal.aws_access}: {refusal.text}")
    return None


def _check_existing_name(refusal: _Refusal) -> AwsError | None:
    if refusal.code != "ResourceInUse":
        return None
    return AlreadyExists(f"SageMaker refuses {refusal.operation} in {refusal.aws_access}: {refusal.text}")


def _check_missing_resource(refusal: _Refusal) -> AwsError | None:
    has_text = refusal.code == "ValidationException" and refusal.text.startswith(_MISSING_TEXTS)
    if not has_text and refusal.code not in _MISSING:
        return None
    return NotFound(f"{refusal.request}: the resource does not exist ({refusal.code}{_prepend_colon(refusal.text)}).")


def _check_server_error(refusal: _Refusal) -> AwsError | None:
    if refusal.status < 500:  # noqa: PLR2004  (HTTP's server errors)
        return None
    return Unavailable(
        f"AWS failed on {refusal.request}: {refusal.status} {refusal.code}{_prepend_colon(refusal.text)}."
    )


def _build_invalid_request(refusal: _Refusal) -> AwsError:
    return Invalid(f"AWS refuses {refusal.request}: {refusal.code}{_prepend_colon(refusal.text)}")


_CHECKS: tuple[Callable[[_Refusal], AwsError | None], ...] = (
    # Errors about the caller are checked first, because their messages may look like other errors.
    _check_unknown_caller,
    _check_expired_credentials,
    _check_throttling,
    # Check this before invalid requests: SageMaker reports a denied iam:PassRole as a ValidationException.
    _check_denial,
    _check_capacity,
    _check_existing_name,
    _check_missing_resource,
    _check_server_error,
    _build_invalid_request,
)


def _translate_local_error(error: Exception, action: str, aws_access: AwsAccess) -> AwsError:
    """Translate errors that occur before a request is sent, or because no response arrives."""
    text = _shorten(str(error))
    if isinstance(error, NoCredentialsError | PartialCredentialsError | ProfileNotFound):
        return NoCredentials(
            f"There are no AWS credentials for {action} in {aws_access} ({text}). Give the operator's service account "
            "a role (IRSA or Pod Identity), or set AWS_PROFILE or AWS_ACCESS_KEY_ID."
        )
    if isinstance(error, SSOError | LoginError | TokenRetrievalError):
        return ExpiredCredentials(f"The AWS sign-in has expired: {text} Sign in again with `aws sso login`.")
    if isinstance(error, CredentialRetrievalError) and _NO_CREDENTIALS_RESPONSE in text:
        return Unavailable(f"The provider of AWS credentials does not answer for {action} in {aws_access}: {text}")
    if isinstance(error, CredentialRetrievalError):
        return ExpiredCredentials(f"The provider of AWS credentials refuses them for {action} in {aws_access}: {text}")
    if isinstance(error, ParamValidationError | InvalidRegionError | UnknownEndpointError):
        return Invalid(f"{action} can't be requested in {aws_access}: {text}")
    # AWS is unreachable, or the connection was interrupted or timed out.
    return Unavailable(f"AWS does not answer {action} in {aws_access}: {text}")


def _shorten(text: str) -> str:
    line = _LONG_VALUE.sub(r"'\1…'", " ".join(text.split()))
    return line if len(line) <= MAX_TEXT_CHARS else line[: MAX_TEXT_CHARS - 1] + "…"


def _prepend_colon(text: str) -> str:
    return f": {text}" if text else ""
