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
"""The text of AccessDenied messages that contain the reason, such as a missing permission for KMS."""

_ROLE = "the role of the job's service account (IRSA or Pod Identity), or the environment of `muster run`"


@dataclass(frozen=True)
class _ErrorMeaning:
    """The meaning of S3's error codes. `template` is the message with placeholders."""

    codes: frozenset[str]
    reason: str
    template: str
    is_retryable: bool = False


_NO_CREDENTIALS = _ErrorMeaning(
    frozenset(), errors.S3_CREDENTIALS_MISSING, f"there are no credentials for {{uri}}; they come from {_ROLE}"
)
_UNREACHABLE = _ErrorMeaning(frozenset(), errors.S3_UNREACHABLE, "{uri} can't be reached: {message}", is_retryable=True)
_REFUSED = _ErrorMeaning(frozenset(), errors.S3_REFUSED, "S3 refuses {action} on {uri}: {code}: {message}")

_MEANINGS = (
    _ErrorMeaning(
        frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"}),
        errors.S3_CREDENTIALS_EXPIRED,
        f"the credentials for {{uri}} have expired; they come from {_ROLE}",
    ),
    _ErrorMeaning(
        frozenset({"InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch", "AuthFailure"}),
        errors.S3_CREDENTIALS_MISSING,
        f"AWS rejects the credentials for {{uri}} ({{code}}); they come from {_ROLE}",
    ),
    _ErrorMeaning(
        frozenset({"AccessDenied", "403", "AllAccessDisabled", "AccountProblem", "AccessDeniedException"}),
        errors.S3_ACCESS_DENIED,
        f"{{action}} on {{uri}} is denied{{why}}; grant it to {_ROLE}",
    ),
    _ErrorMeaning(frozenset({"NoSuchBucket"}), errors.S3_NOT_FOUND, "the bucket of {uri} does not exist"),
    _ErrorMeaning(
        frozenset({"NoSuchKey", "404", "NotFound", "NoSuchVersion"}), errors.S3_NOT_FOUND, "{uri} doesn't exist"
    ),
    _ErrorMeaning(
        frozenset({"PreconditionFailed", "412"}),
        errors.S3_CHANGED,
        "{uri} was overwritten while it was fetched; write data to a new key, and start the job again",
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
        "S3 is unable to process requests for {uri} at the moment ({code})",
        is_retryable=True,
    ),
)
"""The error codes (Amazon S3 API reference, "Error responses"). For HEAD, the code is the HTTP status."""


def translate_error(error: Exception, field: str, action: str, uri: str) -> StorageError:
    """Return the error of IAM's `action` (s3:GetObject) on the URI `uri`, for the job's field `field`."""
    details = error.response.get("Error", {}) if isinstance(error, ClientError) else {}
    code, message = str(details.get("Code", "")), str(details.get("Message", error))[:_MAX_MESSAGE_CHARS]
    meaning = _find_meaning(error, code)
    text = meaning.template.format(
        action=action, uri=uri, code=code, message=message, why=_explain_denial(action, message)
    )
    return StorageError(meaning.reason, f"{field}: {text}", is_retryable=meaning.is_retryable)


def _explain_denial(action: str, message: str) -> str:
    if _DENIAL_REASON in message:
        return f" ({message.rstrip('.')})"
    # Without s3:ListBucket, S3 denies access to missing objects (API reference, GetObject, "Permissions").
    return ", or it doesn't exist and s3:ListBucket is denied, too" if action == "s3:GetObject" else ""


def _find_meaning(error: Exception, code: str) -> _ErrorMeaning:
    if isinstance(error, NoCredentialsError | PartialCredentialsError | CredentialRetrievalError | TokenRetrievalError):
        return _NO_CREDENTIALS
    if not isinstance(error, ClientError):
        return _UNREACHABLE
    return next((meaning for meaning in _MEANINGS if code in meaning.codes), _REFUSED)
