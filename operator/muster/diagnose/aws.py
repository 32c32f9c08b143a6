"""What botocore's errors mean, in sentences. Pure.

An answer's words are AWS's; none are shown of those that quote the request, for they hold what proves who asked.
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
from muster.objects.aws.place import Place

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
"""As botocore has them (retries/standard.py), without those of services that muster doesn't ask."""

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
"""Those about signatures quote the request."""

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
_MISSING_TEXTS = ("Requested resource not found", "Could not find")
"""SageMaker says it with a ValidationException, whatever its model says (aws/aws-sdk#165)."""

_LONG_VALUE = re.compile(r"(?<=Value )'(.{40}).+?'(?= at ')")
"""SageMaker quotes all of what it refuses before it says why, and a hyperparameter has up to 2,500 characters."""

_NOT_TOLD_WHY = "IAM's policies of that identity, of the organisation or of the resource forbid it."

_SILENT = "Received error when attempting to retrieve container metadata"
"""botocore's words for an agent of EKS Pod Identity that is away: it says nothing about the credentials."""

_DENIAL = re.compile(r"User: (?P<who>\S+) is not authorized to perform: (?P<action>[\w-]+:\w+)(?P<rest>.*)", re.DOTALL)
_ON = re.compile(r"\s*on resource: (?P<resource>\S+)(?P<why>.*)", re.DOTALL)
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
"""Where IAM's name isn't the operation's (Service Authorization Reference, Amazon S3)."""


@dataclass(frozen=True)
class _Refusal:
    """What AWS answered to `operation`."""

    service: str
    operation: str
    place: Place
    code: str
    text: str
    status: int

    @property
    def action(self) -> str:
        """IAM's."""
        return iam_action(self.service, self.operation)

    @property
    def asked(self) -> str:
        return f"{self.action} in {self.place}"


def iam_action(service: str, operation: str) -> str:
    """What IAM calls the right to ask for an operation."""
    return _ACTIONS.get((service, operation), f"{service}:{operation}")


def classified(error: Exception, service: str, operation: str, place: Place) -> AwsError:
    """The error that an exception of botocore is; `operation` is what was asked for when it was raised."""
    if not isinstance(error, ClientError):
        return _unasked(error, iam_action(service, operation), place)
    answer = error.response.get("Error", {})
    # The role is assumed on the way to something else.
    asked = error.operation_name
    refusal = _Refusal(
        service="sts" if asked in {"AssumeRole", "AssumeRoleWithWebIdentity", "GetCallerIdentity"} else service,
        operation=asked,
        place=place,
        code=str(answer.get("Code", "")),
        text=_shown(str(answer.get("Message", ""))),
        status=int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)),
    )
    return next(result for check in _CHECKS if (result := check(refusal)) is not None)


def _throttled(refusal: _Refusal) -> AwsError | None:
    if refusal.code not in _THROTTLED:
        return None
    return Throttled(f"AWS answers {refusal.asked} more slowly than it is asked, by all who share the account.")


def _expired(refusal: _Refusal) -> AwsError | None:
    if refusal.code not in _EXPIRED:
        return None
    return ExpiredCredentials(
        f"The operator's AWS credentials have expired: {refusal.asked} was refused with {refusal.code}. "
        "See to it that what hands them out (IRSA, Pod Identity, profile) goes on doing so."
    )


def _unknown_caller(refusal: _Refusal) -> AwsError | None:
    if refusal.code not in _UNKNOWN_CALLER:
        return None
    return NoCredentials(
        f"AWS doesn't accept the operator's credentials: {refusal.asked} was refused with {refusal.code}. "
        "They are wrong, deleted or of another partition, or this machine's clock is off by minutes."
    )


def _denied(refusal: _Refusal) -> AwsError | None:
    match = _DENIAL.search(refusal.text)
    if match is None and refusal.code not in _DENIED:
        return None
    if match is None:
        why = f" AWS says: {refusal.text}" if refusal.text else ""
        return AccessDenied(f"{refusal.asked} is not allowed.{why or ' ' + _NOT_TOLD_WHY}", refusal.action, "")
    # Who may create a training job may still not hand over its role: then the action is iam:PassRole.
    where = _ON.match(match["rest"])
    resource = where["resource"].rstrip(".,") if where else ""
    why = (where["why"] if where else match["rest"]).strip().rstrip(".").removeprefix("because ")
    return AccessDenied(
        f"{match['who']} may not do {match['action']}{f' on {resource}' if resource else ''}"
        f"{f': {why}' if why else ''}. Allow it with IAM{_and_in_trust(match['action'], refusal.place)}.",
        match["action"],
        resource,
    )


def _and_in_trust(action: str, place: Place) -> str:
    # STS says the same of who isn't let in at all and of whom it isn't said on whose behalf.
    is_of_trust = action == "sts:AssumeRole" and place.external_id
    return f", and in the role's trust policy for the external id {place.external_id}" if is_of_trust else ""


def _no_capacity(refusal: _Refusal) -> AwsError | None:
    if refusal.code == "ResourceLimitExceeded" or refusal.code.startswith("Insufficient"):
        return NoCapacity(f"SageMaker has no room for the training job in {refusal.place}: {refusal.text}")
    return None


def _exists(refusal: _Refusal) -> AwsError | None:
    if refusal.code != "ResourceInUse":
        return None
    return AlreadyExists(f"SageMaker refuses {refusal.operation} in {refusal.place}: {refusal.text}")


def _missing(refusal: _Refusal) -> AwsError | None:
    is_said = refusal.code == "ValidationException" and refusal.text.startswith(_MISSING_TEXTS)
    if not is_said and refusal.code not in _MISSING:
        return None
    return NotFound(f"{refusal.asked}: there is no such thing ({refusal.code}{_colon(refusal.text)}).")


def _failed(refusal: _Refusal) -> AwsError | None:
    if refusal.status < 500:  # noqa: PLR2004  (HTTP's server errors)
        return None
    return Unavailable(f"AWS failed to answer {refusal.asked}: {refusal.status} {refusal.code}{_colon(refusal.text)}.")


def _invalid(refusal: _Refusal) -> AwsError:
    return Invalid(f"AWS refuses {refusal.asked}: {refusal.code}{_colon(refusal.text)}")


_CHECKS: tuple[Callable[[_Refusal], AwsError | None], ...] = (
    # First who asks: the words of a refusal may look like those of anything else.
    _unknown_caller,
    _expired,
    _throttled,
    # Before what is invalid: SageMaker refuses a role that may not be passed with a ValidationException.
    _denied,
    _no_capacity,
    _exists,
    _missing,
    _failed,
    _invalid,
)


def _unasked(error: Exception, action: str, place: Place) -> AwsError:
    """AWS was not asked, or didn't answer."""
    words = _shown(str(error))
    if isinstance(error, NoCredentialsError | PartialCredentialsError | ProfileNotFound):
        return NoCredentials(
            f"No AWS credentials are found for {action} in {place} ({words}). Give the operator's service account a "
            "role (IRSA or Pod Identity), or set AWS_PROFILE or AWS_ACCESS_KEY_ID."
        )
    if isinstance(error, SSOError | LoginError | TokenRetrievalError):
        return ExpiredCredentials(f"The AWS sign-in has expired: {words} Sign in again with `aws sso login`.")
    if isinstance(error, CredentialRetrievalError) and _SILENT in words:
        return Unavailable(f"What hands out AWS credentials gives no answer for {action} in {place}: {words}")
    if isinstance(error, CredentialRetrievalError):
        return ExpiredCredentials(f"No AWS credentials are handed out for {action} in {place}: {words}")
    if isinstance(error, ParamValidationError | InvalidRegionError | UnknownEndpointError):
        return Invalid(f"{action} can't be asked for in {place}: {words}")
    # Not reached, cut off, or too late.
    return Unavailable(f"AWS gives no answer to {action} in {place}: {words}")


def _shown(text: str) -> str:
    line = _LONG_VALUE.sub(r"'\1…'", " ".join(text.split()))
    return line if len(line) <= MAX_TEXT_CHARS else line[: MAX_TEXT_CHARS - 1] + "…"


def _colon(text: str) -> str:
    return f": {text}" if text else ""
