from __future__ import annotations

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError, ReadTimeoutError

from muster.render.storage.errors import StorageError
from muster.storage.retry import BACKOFF_SECONDS, retry
from muster.storage.s3.errors import translate_error

PLACE = "s3://data/train/1.png"

_WHO = "User: arn:aws:sts::111122223333:assumed-role/training/pod"
_KMS = "authorized to perform: kms:Decrypt on resource: arn:aws:kms:us-east-1:111122223333:key/k"


def _error(code: str, message: str = "said") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "GetObject")


@pytest.mark.parametrize(
    ("error", "reason", "says", "passes"),
    [
        (_error("AccessDenied"), "S3AccessDenied", "s3:GetObject on s3://data/train/1.png is denied", 0),
        (_error("403"), "S3AccessDenied", "service account", 0),
        (_error("403"), "S3AccessDenied", "or it doesn't exist and s3:ListBucket is denied, too", 0),
        (
            _error("AccessDenied", f"{_WHO} is not {_KMS}."),
            "S3AccessDenied",
            f"is denied ({_WHO} is not {_KMS}); grant",
            0,
        ),
        (_error("NoSuchKey"), "S3NotFound", "doesn't exist", 0),
        (_error("NoSuchBucket"), "S3NotFound", "the bucket of", 0),
        (_error("404"), "S3NotFound", "doesn't exist", 0),
        (_error("ExpiredToken"), "S3CredentialsExpired", "have expired", 0),
        (_error("InvalidAccessKeyId"), "S3CredentialsMissing", "AWS rejects", 0),
        (NoCredentialsError(), "S3CredentialsMissing", "there are no credentials", 0),
        (_error("PreconditionFailed"), "S3Changed", "was overwritten", 0),
        (_error("SlowDown"), "S3Unreachable", "is unable to process requests", 1),
        (_error("503"), "S3Unreachable", "is unable to process requests", 1),
        (EndpointConnectionError(endpoint_url="http://s3"), "S3Unreachable", "can't be reached", 1),
        (ReadTimeoutError(endpoint_url="http://s3"), "S3Unreachable", "can't be reached", 1),
        (_error("InvalidObjectState", "in the archive"), "S3Refused", "InvalidObjectState: in the archive", 0),
    ],
)
def test_what_s3_says_becomes_a_reason_and_a_sentence(error: Exception, reason: str, says: str, passes: int) -> None:
    problem = translate_error(error, "spec.inputs[0].s3.uri", "s3:GetObject", PLACE)
    assert (problem.reason, problem.is_retryable) == (reason, bool(passes))
    assert says in problem.message
    assert problem.message.startswith("spec.inputs[0].s3.uri: ")


def test_what_may_pass_is_tried_again_and_the_rest_is_not() -> None:
    pauses: list[float] = []
    failures = [StorageError("S3Unreachable", "away", is_retryable=True)] * 3

    def attempt() -> int:
        if failures:
            raise failures.pop()
        return 7

    assert retry(attempt, pauses.append) == 7
    assert pauses == list(BACKOFF_SECONDS[:3])

    def denied() -> int:
        pauses.append(0.0)
        raise StorageError("S3AccessDenied", "no")

    pauses.clear()
    with pytest.raises(StorageError):
        retry(denied, pauses.append)
    assert pauses == [0.0]


def test_patience_has_an_end() -> None:
    pauses: list[float] = []

    def away() -> None:
        raise StorageError("S3Unreachable", "away", is_retryable=True)

    with pytest.raises(StorageError, match="away"):
        retry(away, pauses.append)
    assert pauses == list(BACKOFF_SECONDS)
