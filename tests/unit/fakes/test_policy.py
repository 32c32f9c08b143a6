"""The tests' own evaluation of IAM policies, which checks the documented policy."""

import pytest

from fakes.sagemaker_service.policy import Policy, Right

JOB = "arn:aws:sagemaker:us-west-2:111122223333:training-job/a-1"


def policy(*statements: dict[str, object]) -> Policy:
    return Policy({"Version": "2012-10-17", "Statement": list(statements)})


def allow(action: object, resource: object = "*", condition: object = None) -> dict[str, object]:
    statement: dict[str, object] = {"Effect": "Allow", "Action": action, "Resource": resource}
    return statement if condition is None else statement | {"Condition": condition}


@pytest.mark.parametrize(
    ("statement", "right", "is_allowed"),
    [
        (allow("sagemaker:StopTrainingJob"), Right("sagemaker:StopTrainingJob", JOB), True),
        (allow("sagemaker:stoptrainingjob"), Right("sagemaker:StopTrainingJob", JOB), True),
        (allow(["a:B", "sagemaker:Stop*"]), Right("sagemaker:StopTrainingJob", JOB), True),
        (allow("sagemaker:Stop"), Right("sagemaker:StopTrainingJob", JOB), False),
        (allow("*", "arn:aws:sagemaker:*:111122223333:training-job/*"), Right("a:B", JOB), True),
        (allow("*", "arn:aws:sagemaker:*:111122223333:training-job/b-*"), Right("a:B", JOB), False),
        (allow("*", "*", {"Null": {"k": "false"}}), Right("a:B", JOB, {"k": "v"}), True),
        (allow("*", "*", {"Null": {"k": "false"}}), Right("a:B", JOB), False),
        (allow("*", "*", {"StringEquals": {"k": ["u", "v"]}}), Right("a:B", JOB, {"k": "v"}), True),
        (allow("*", "*", {"StringEquals": {"k": "u"}}), Right("a:B", JOB, {"k": "v"}), False),
        (allow("*", "*", {"StringLike": {"k": "v*"}}), Right("a:B", JOB, {"k": "vw"}), True),
        (allow("*", "*", {"StringLike": {"k": "v*"}}), Right("a:B", JOB), False),
    ],
)
def test_a_statement_allows(statement: dict[str, object], right: Right, is_allowed: bool) -> None:  # noqa: FBT001
    assert policy(statement).allows(right) == is_allowed


def test_a_denial_outweighs_what_is_allowed() -> None:
    denied = policy(allow("*"), {"Effect": "Deny", "Action": "a:B", "Resource": "*"})
    assert denied.allows(Right("a:C", JOB))
    assert not denied.allows(Right("a:B", JOB))


def test_what_is_not_understood_is_not_passed_over() -> None:
    with pytest.raises(ValueError, match="NotAction"):
        policy(allow("*") | {"NotAction": "a:B"})
    with pytest.raises(KeyError, match="IpAddress"):
        policy(allow("*", "*", {"IpAddress": {"k": "v"}})).allows(Right("a:B", JOB))
