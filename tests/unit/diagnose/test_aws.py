import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    ProfileNotFound,
    ReadTimeoutError,
    UnauthorizedSSOTokenError,
)

from muster.diagnose.aws import MAX_TEXT_CHARS, get_iam_action, translate_error
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
from support.rows import check_rows

HERE = AwsAccess("us-west-2")
WHO = "arn:aws:sts::111122223333:assumed-role/muster/pod"
ALLOW = "Allow it with IAM."
JOB = "arn:aws:sagemaker:us-west-2:111122223333:training-job/a-1"


def answered(code: str, message: str = "", status: int = 400, operation: str = "CreateTrainingJob") -> ClientError:
    return ClientError(
        {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]
        operation,
    )


ANSWERS_MEAN_ROWS: list[tuple[str, str, int, type[AwsError]]] = [
    ("ThrottlingException", "Rate exceeded", 400, Throttled),
    ("SlowDown", "Please reduce your request rate.", 503, Throttled),
    ("ExpiredTokenException", "The security token included in the request is expired", 400, ExpiredCredentials),
    ("ExpiredToken", "The provided token has expired.", 400, ExpiredCredentials),
    ("RequestExpired", "Request has expired.", 400, ExpiredCredentials),
    ("UnrecognizedClientException", "The security token included in the request is invalid.", 400, NoCredentials),
    ("InvalidClientTokenId", "The security token included in the request is invalid.", 403, NoCredentials),
    ("SignatureDoesNotMatch", "The Canonical String should have been", 403, NoCredentials),
    ("InvalidSignatureException", "Signature expired", 400, NoCredentials),
    ("AccessDeniedException", f"User: {WHO} is not authorized to perform: a:B on resource: {JOB}", 400, AccessDenied),
    ("AccessDenied", "Access Denied", 403, AccessDenied),
    ("403", "Forbidden", 403, AccessDenied),
    ("ResourceLimitExceeded", "The account-level service limit ... is 0 Instances", 400, NoCapacity),
    ("InsufficientCapacityException", "No capacity", 400, NoCapacity),
    ("ResourceInUse", "Training job names must be unique", 400, AlreadyExists),
    ("ResourceNotFound", "", 400, NotFound),
    ("ValidationException", "Requested resource not found.", 400, NotFound),
    ("NoSuchBucket", "The specified bucket does not exist", 404, NotFound),
    ("404", "Not Found", 404, NotFound),
    ("InternalFailure", "", 500, Unavailable),
    ("ServiceUnavailable", "", 503, Unavailable),
    ("503", "Service Unavailable", 503, Unavailable),
    ("ValidationException", "No S3 objects found", 400, Invalid),
    ("SomethingNew", "of which muster knows nothing", 400, Invalid),
]


def test_answers_mean() -> None:
    def check(code: str, message: str, status: int, error: type[AwsError]) -> None:
        result = translate_error(answered(code, message, status), "sagemaker", "CreateTrainingJob", HERE)
        assert type(result) is error

    check_rows(ANSWERS_MEAN_ROWS, lambda row: check(*row))


@pytest.mark.parametrize(
    ("raised", "error", "words"),
    [
        (NoCredentialsError(), NoCredentials, "Give the operator's service account a role"),
        (ProfileNotFound(profile="lab"), NoCredentials, "The config profile (lab) could not be found"),
        (UnauthorizedSSOTokenError(), ExpiredCredentials, "aws sso login"),
        (CredentialRetrievalError(provider="x", error_msg="y"), ExpiredCredentials, "retrieving credentials from x: y"),
        (
            CredentialRetrievalError(
                provider="container-role",
                error_msg="Received error when attempting to retrieve container metadata: Connect timeout",
            ),
            Unavailable,
            "does not answer",
        ),
        (ParamValidationError(report="no Name"), Invalid, "no Name"),
        (EndpointConnectionError(endpoint_url="http://x"), Unavailable, "http://x"),
        (ConnectTimeoutError(endpoint_url="http://x"), Unavailable, "http://x"),
        (ReadTimeoutError(endpoint_url="http://x"), Unavailable, "http://x"),
        (BotoCoreError(), Unavailable, "unspecified"),
    ],
)
def test_what_never_got_an_answer_means(raised: BotoCoreError, error: type[AwsError], words: str) -> None:
    result = translate_error(raised, "sagemaker", "ListTrainingJobs", HERE)
    assert type(result) is error
    assert words in result.message


def denial(message: str, operation: str = "CreateTrainingJob", service: str = "sagemaker") -> AccessDenied:
    result = translate_error(answered("AccessDeniedException", message, operation=operation), service, operation, HERE)
    assert isinstance(result, AccessDenied)
    return result


@pytest.mark.parametrize(
    ("tail", "action", "resource", "sentence"),
    [
        (
            f"sagemaker:CreateTrainingJob on resource: {JOB} because no identity-based policy allows the action",
            "sagemaker:CreateTrainingJob",
            JOB,
            (
                f"{WHO} is not allowed to do sagemaker:CreateTrainingJob on {JOB}: "
                f"no identity-based policy allows the action. {ALLOW}"
            ),
        ),
        (
            f"sagemaker:CreateTrainingJob on resource: {JOB} with an explicit deny",
            "sagemaker:CreateTrainingJob",
            JOB,
            f"{WHO} is not allowed to do sagemaker:CreateTrainingJob on {JOB}: with an explicit deny. {ALLOW}",
        ),
        (
            "iam:PassRole on resource: arn:aws:iam::111122223333:role/R",
            "iam:PassRole",
            "arn:aws:iam::111122223333:role/R",
            f"{WHO} is not allowed to do iam:PassRole on arn:aws:iam::111122223333:role/R. {ALLOW}",
        ),
        (
            "sagemaker:ListTrainingJobs",
            "sagemaker:ListTrainingJobs",
            "",
            f"{WHO} is not allowed to do sagemaker:ListTrainingJobs. {ALLOW}",
        ),
    ],
)
def test_a_denial_names_who_what_and_on_what(tail: str, action: str, resource: str, sentence: str) -> None:
    result = denial(f"User: {WHO} is not authorized to perform: {tail}")
    assert (result.action, result.resource, result.message) == (action, resource, sentence)


def test_a_denial_without_words_names_what_was_asked_for() -> None:
    error = answered("403", "", 403, operation="HeadObject")
    head = translate_error(error, "s3", "HeadObject", AwsAccess("us-west-2", "arn:aws:iam::444455556666:role/r"))
    assert isinstance(head, AccessDenied)
    assert head.action == "s3:GetObject"
    assert head.message.startswith("s3:GetObject in us-west-2 as arn:aws:iam::444455556666:role/r is not allowed.")


def test_a_role_that_may_not_be_assumed_is_the_problem_of_every_request() -> None:
    error = answered(
        "AccessDenied",
        f"User: {WHO} is not authorized to perform: sts:AssumeRole on resource: arn:aws:iam::444455556666:role/r",
        403,
        operation="AssumeRole",
    )
    result = translate_error(error, "sagemaker", "DescribeTrainingJob", HERE)
    assert isinstance(result, AccessDenied)
    assert (result.action, result.resource) == ("sts:AssumeRole", "arn:aws:iam::444455556666:role/r")
    throttled = translate_error(
        answered("Throttling", operation="AssumeRole"), "sagemaker", "DescribeTrainingJob", HERE
    )
    assert "sts:AssumeRole" in throttled.message


def test_what_proves_who_asked_is_not_shown() -> None:
    message = "The Canonical String for this request should have been 'POST x-amz-security-token:SECRET-TOKEN'"
    for code in ("SignatureDoesNotMatch", "InvalidSignatureException"):
        result = translate_error(answered(code, message, 403), "sagemaker", "ListTrainingJobs", HERE)
        assert "SECRET-TOKEN" not in result.message + repr(result)


def test_long_values_do_not_hide_why_they_are_refused() -> None:
    value = "it's " + "x" * 2500
    message = (
        f"1 validation error detected: Value '{value}' at 'hyperParameters.a.member' failed to satisfy constraint: "
        "Member must have length less than or equal to 2500"
    )
    result = translate_error(answered("ValidationException", message), "sagemaker", "CreateTrainingJob", HERE)
    assert result.message.endswith("Member must have length less than or equal to 2500")
    assert "…' at 'hyperParameters.a.member'" in result.message


def test_messages_are_bounded_and_on_one_line() -> None:
    result = translate_error(answered("ValidationException", "a\n" * 5000), "sagemaker", "CreateTrainingJob", HERE)
    assert len(result.message) < MAX_TEXT_CHARS + 100
    assert "\n" not in result.message


def test_rights_are_named_as_iam_does() -> None:
    assert get_iam_action("sagemaker", "StopTrainingJob") == "sagemaker:StopTrainingJob"
    assert get_iam_action("s3", "ListObjectsV2") == "s3:ListBucket"
    assert get_iam_action("s3", "UploadPart") == "s3:PutObject"
    assert get_iam_action("s3", "PutObject") == "s3:PutObject"
