"""The stand-in for boto3. It returns account, role and region; every other result is an unknown value."""

from __future__ import annotations

from .account import partition
from .arguments import bind_arguments
from .errors import Unsupported
from .state import current_state
from .unknown import Unknown

_SESSION = (
    "aws_access_key_id",
    "aws_secret_access_key",
    "aws_session_token",
    "region_name",
    "botocore_session",
    "profile_name",
    "aws_account_id",
)
"""boto3.Session's parameters in order (boto3 1.43)."""


class BotoSession:
    """boto3.Session: its region, and clients that send no request."""

    def __init__(self, *positional: object, **named: object) -> None:
        arguments = bind_arguments("boto3.Session", _SESSION, positional, named)
        region = arguments.get("region_name")
        self.given_region = str(region) if region is not None else None

    @property
    def region_name(self) -> str:
        return self.given_region or current_state().facts.need_region("boto3.Session().region_name")

    def client(self, service_name: str, *_: object, **__: object) -> Sts | Iam | Unknown:
        return client(service_name)

    def resource(self, service_name: str, *_: object, **__: object) -> Unknown:
        return current_state().unknown(f"boto3.resource({service_name!r})")

    def __getattr__(self, name: str) -> Unknown:
        if name.startswith("__"):
            raise AttributeError(name)
        return current_state().unknown(f"boto3.Session().{name}")


class Sts:
    """The STS client: the caller's identity."""

    def get_caller_identity(self) -> dict[str, object]:
        asked = "sts.get_caller_identity()"
        answer: dict[str, object] = {"Account": current_state().facts.need_account(asked)}
        answer["Arn"] = current_state().facts.role or current_state().unknown(f"{asked}['Arn']")
        answer["UserId"] = current_state().unknown(f"{asked}['UserId']")
        return answer

    def __getattr__(self, name: str) -> Unknown:
        if name.startswith("__"):
            raise AttributeError(name)
        return current_state().unknown(f"boto3.client('sts').{name}")


class Iam:
    """The IAM client: notebooks look up a role's ARN by its name."""

    def get_role(self, *, RoleName: str) -> dict[str, dict[str, str]]:  # noqa: N803 - AWS spells it so
        return {"Role": {"RoleName": RoleName, "Arn": role_arn(RoleName)}}

    def __getattr__(self, name: str) -> Unknown:
        if name.startswith("__"):
            raise AttributeError(name)
        return current_state().unknown(f"boto3.client('iam').{name}")


def client(service_name: str, *_: object, **__: object) -> Sts | Iam | Unknown:
    """boto3.client."""
    if service_name == "sts":
        return Sts()
    if service_name == "iam":
        return Iam()
    return current_state().unknown(f"boto3.client({service_name!r})")


def resource(service_name: str, *_: object, **__: object) -> Unknown:
    """boto3.resource."""
    return current_state().unknown(f"boto3.resource({service_name!r})")


def role_arn(role: str) -> str:
    """Return the ARN of a role; a plain name means a role without a path."""
    if "/" in role:
        return role
    facts = current_state().facts
    account, region = facts.need_account(f"the role {role}"), facts.need_region(f"the role {role}")
    arn = f"arn:{partition(region)}:iam::{account}:role/{role}"
    if arn != facts.role:
        current_state().recorder.warn(f"muster assumes {arn} for the role {role}; if it has a path, write its ARN")
    return arn


class ClientError(Exception):
    """Replaces botocore's ClientError in `except ClientError`."""


class NoCredentialsError(Exception):
    """Replaces botocore's NoCredentialsError."""


def no_local_mode(*_: object, **__: object) -> object:
    """Raise `Unsupported`: muster can't import jobs in local mode."""
    raise Unsupported(
        "local mode runs containers on this machine: import the job for SageMaker and use `muster run` to run it here"
    )
