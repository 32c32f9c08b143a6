"""Translate S3's errors to messages for the job's owner. Pure."""

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

_MAX_SAID = 300

_TELLS_WHY = "is not authorized to perform"
"""Part of an AccessDenied message: S3 may allow the action, and KMS not."""

_ROLE = "the role of the job's service account (IRSA or Pod Identity), or the environment of `muster run`"


@dataclass(frozen=True)
class _Answer:
    """The meaning of S3's error codes; `words` may contain action, place, code, and the reason of a denial."""

    codes: frozenset[str]
    reason: str
    words: str
    may_pass: bool = False


_NO_CREDENTIALS = _Answer(
    frozenset(), errors.S3_CREDENTIALS_MISSING, f"there are no credentials for {{place}}; they come from {_ROLE}"
)
_NOT_REACHED = _Answer(frozenset(), errors.S3_UNREACHABLE, "{place} can't be reached: {said}", may_pass=True)
_REFUSED = _Answer(frozenset(), errors.S3_REFUSED, "S3 refuses {action} on {place}: {code}: {said}")

_ANSWERS = (
    _Answer(
        frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"}),
        errors.S3_CREDENTIALS_EXPIRED,
        f"the credentials for {{place}} have expired; they come from {_ROLE}",
    ),
    _Answer(
        frozenset({"InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch", "AuthFailure"}),
        errors.S3_CREDENTIALS_MISSING,
        f"AWS rejects the credentials for {{place}} ({{code}}); they come from {_ROLE}",
    ),
    _Answer(
        frozenset({"AccessDenied", "403", "AllAccessDisabled", "AccountProblem", "AccessDeniedException"}),
        errors.S3_ACCESS_DENIED,
        f"{{action}} on {{place}} is denied{{why}}; grant it to {_ROLE}",
    ),
    _Answer(frozenset({"NoSuchBucket"}), errors.S3_NOT_FOUND, "the bucket of {place} does not exist"),
    _Answer(frozenset({"NoSuchKey", "404", "NotFound", "NoSuchVersion"}), errors.S3_NOT_FOUND, "{place} doesn't exist"),
    _Answer(
        frozenset({"PreconditionFailed", "412"}),
        errors.S3_CHANGED,
        "{place} was overwritten while it was fetched; write data to a new key, and start the job again",
    ),
    _Answer(
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


def explained(error: Exception, field: str, action: str, place: str) -> StorageError:
    """Explain why `action` (as in IAM: s3:GetObject) on `place` (s3://...) failed; `field` is the job's field."""
    details = error.response.get("Error", {}) if isinstance(error, ClientError) else {}
    code, said = str(details.get("Code", "")), str(details.get("Message", error))[:_MAX_SAID]
    answer = _answer(error, code)
    words = answer.words.format(action=action, place=place, code=code, said=said, why=_why(action, said))
    return StorageError(answer.reason, f"{field}: {words}", may_pass=answer.may_pass)


def _why(action: str, said: str) -> str:
    if _TELLS_WHY in said:
        return f" ({said.rstrip('.')})"
    # otherwise S3 does not say: API reference, GetObject, "Permissions"
    return ", or it doesn't exist and s3:ListBucket is denied, too" if action == "s3:GetObject" else ""


def _answer(error: Exception, code: str) -> _Answer:
    if isinstance(error, NoCredentialsError | PartialCredentialsError | CredentialRetrievalError | TokenRetrievalError):
        return _NO_CREDENTIALS
    if not isinstance(error, ClientError):
        return _NOT_REACHED
    return next((answer for answer in _ANSWERS if code in answer.codes), _REFUSED)
