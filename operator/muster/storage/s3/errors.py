"""Translate S3's errors to messages for users. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from botocore.exceptions import (
    ClientError,
    CredentialRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
    TokenRetrievalError,
)

from muster.render.storage import errors
from muster.render.storage.errors import StorageError

_MAX_MESSAGE_CHARS = 300

_DENIAL_REASON = "is not authorized to perform"
"""A part of AccessDenied messages that contain the reason, such as a missing permission for KMS."""

_ROLE = "the role of the job's service account (IRSA or Pod Identity), or the environment of `muster run`"


@dataclass(frozen=True)
class _ErrorMeaning:
    """The meaning of S3's error codes; `words` may contain action, place, code, and the reason of a denial."""

    codes: frozenset[str]
    reason: str
    words: str
    may_pass: bool = False


_NO_CREDENTIALS = _ErrorMeaning(
    frozenset(), errors.S3_CREDENTIALS_MISSING, f"there are no credentials for {{place}}; they come from {_ROLE}"
)
_UNREACHABLE = _ErrorMeaning(frozenset(), errors.S3_UNREACHABLE, "{place} can't be reached: {said}", may_pass=True)
_REFUSED = _ErrorMeaning(frozenset(), errors.S3_REFUSED, "S3 refuses {action} on {place}: {code}: {said}")

_MEANINGS = (
    _ErrorMeaning(
        frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"}),
        errors.S3_CREDENTIALS_EXPIRED,
        f"the credentials for {{place}} have expired; they come from {_ROLE}",
    ),
    _ErrorMeaning(
        frozenset({"InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch", "AuthFailure"}),
        errors.S3_CREDENTIALS_MISSING,
        f"AWS rejects the credentials for {{place}} ({{code}}); they come from {_ROLE}",
    ),
    _ErrorMeaning(
        frozenset({"AccessDenied", "403", "AllAccessDisabled", "AccountProblem", "AccessDeniedException"}),
        errors.S3_ACCESS_DENIED,
        f"{{action}} on {{place}} is denied{{why}}; grant it to {_ROLE}",
    ),
    _ErrorMeaning(frozenset({"NoSuchBucket"}), errors.S3_NOT_FOUND, "the bucket of {place} does not exist"),
    _ErrorMeaning(
        frozenset({"NoSuchKey", "404", "NotFound", "NoSuchVersion"}), errors.S3_NOT_FOUND, "{place} doesn't exist"
    ),
    _ErrorMeaning(
        frozenset({"PreconditionFailed", "412"}),
        errors.S3_CHANGED,
        "{place} was overwritten while it was fetched; write data to a new key, and start the job again",
    ),
    _ErrorMeaning(
        frozenset(
            {
                *(
                    "InternalError",
                    "ServiceUnavailable",
                    "SlowDown",
                    "RequestTimeout",
                    "Throttling",
                    "RequestLimitExceeded",
                ),
                *("BandwidthLimitExceeded", "500", "502", "503", "504", "OperationAborted", "ThrottlingException"),
            }
        ),
        errors.S3_UNREACHABLE,
        "S3 can't answer for {place} ({code})",
        may_pass=True,
    ),
)
"""Amazon S3 API reference, "Error responses"; a response to HEAD has no body, and its status is the code."""


def translate_error(error: Exception, field: str, action: str, place: str) -> StorageError:
    """Explain why `action` (as in IAM: s3:GetObject) on `place` (s3://...) failed; `field` is the job's field."""
    details = error.response.get("Error", {}) if isinstance(error, ClientError) else {}
    code, message = str(details.get("Code", "")), str(details.get("Message", error))[:_MAX_MESSAGE_CHARS]
    answer = _find_meaning(error, code)
    text = answer.words.format(action=action, place=place, code=code, said=message, why=_denial_detail(action, message))
    return StorageError(answer.reason, f"{field}: {text}", may_pass=answer.may_pass)


def _denial_detail(action: str, message: str) -> str:
    if _DENIAL_REASON in message:
        return f" ({message.rstrip('.')})"
    # without s3:ListBucket, S3 denies access to missing objects (API reference, GetObject, "Permissions")
    return ", or it doesn't exist and s3:ListBucket is denied, too" if action == "s3:GetObject" else ""


def _find_meaning(error: Exception, code: str) -> _ErrorMeaning:
    if isinstance(error, NoCredentialsError | PartialCredentialsError | CredentialRetrievalError | TokenRetrievalError):
        return _NO_CREDENTIALS
    if not isinstance(error, ClientError):
        return _UNREACHABLE
    return next((answer for answer in _MEANINGS if code in answer.codes), _REFUSED)
