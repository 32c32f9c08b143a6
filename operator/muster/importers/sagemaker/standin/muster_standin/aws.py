"""In boto3's place: who one is, and where. All else has no value, and nothing is asked."""

from __future__ import annotations

from .arguments import bound
from .facts import partition
from .refused import Refused
from .unknown import Unknown
from .world import world

_SESSION = (
    "aws_access_key_id",
    "aws_secret_access_key",
    "aws_session_token",
    "region_name",
    "botocore_session",
    "profile_name",
    "aws_account_id",
)
"""boto3.Session's parameters in their order (boto3 1.43)."""


class BotoSession:
    """boto3.Session: its region, and clients that send no request."""

    def __init__(self, *positional: object, **named: object) -> None:
        arguments = bound("boto3.Session", _SESSION, positional, named)
        region = arguments.get("region_name")
        self.given_region = str(region) if region is not None else None

    @property
    def region_name(self) -> str:
        return self.given_region or world().facts.need_region("boto3.Session().region_name")

    def client(self, service_name: str, *_: object, **__: object) -> Sts | Iam | Unknown:
        return client(service_name)

    def resource(self, service_name: str, *_: object, **__: object) -> Unknown:
        return world().unknown(f"boto3.resource({service_name!r})")

    def __getattr__(self, name: str) -> Unknown:
        if name.startswith("__"):
            raise AttributeError(name)
        return world().unknown(f"boto3.Session().{name}")


class Sts:
    """The STS client: who one is."""

    def get_caller_identity(self) -> dict[str, object]:
        asked = "sts.get_caller_identity()"
        answer: dict[str, object] = {"Account": world().facts.need_account(asked)}
        answer["Arn"] = world().facts.role or world().unknown(f"{asked}['Arn']")
        answer["UserId"] = world().unknown(f"{asked}['UserId']")
        return answer

    def __getattr__(self, name: str) -> Unknown:
        if name.startswith("__"):
            raise AttributeError(name)
        return world().unknown(f"boto3.client('sts').{name}")


class Iam:
    """The IAM client: notebooks look a role's ARN up by its name."""

    def get_role(self, *, RoleName: str) -> dict[str, dict[str, str]]:  # noqa: N803 - AWS spells it so
        return {"Role": {"RoleName": RoleName, "Arn": role_arn(RoleName)}}

    def __getattr__(self, name: str) -> Unknown:
        if name.startswith("__"):
            raise AttributeError(name)
        return world().unknown(f"boto3.client('iam').{name}")


def client(service_name: str, *_: object, **__: object) -> Sts | Iam | Unknown:
    """boto3.client."""
    if service_name == "sts":
        return Sts()
    if service_name == "iam":
        return Iam()
    return world().unknown(f"boto3.client({service_name!r})")


def resource(service_name: str, *_: object, **__: object) -> Unknown:
    """boto3.resource."""
    return world().unknown(f"boto3.resource({service_name!r})")


def role_arn(role: str) -> str:
    """A role's ARN; of one that only has a name, the one that it has unless it was made with a path."""
    if "/" in role:
        return role
    facts = world().facts
    account, region = facts.need_account(f"the role {role}"), facts.need_region(f"the role {role}")
    arn = f"arn:{partition(region)}:iam::{account}:role/{role}"
    if arn != facts.role:
        world().recorder.warn(f"the role {role} is taken for {arn}; if it has a path, write its ARN into the script")
    return arn


class ClientError(Exception):
    """botocore's, so that `except ClientError` finds a class."""


class NoCredentialsError(Exception):
    """botocore's, as above."""


def no_local_mode(*_: object, **__: object) -> object:
    """The SDK's local mode has nothing to import."""
    raise Refused(
        "local mode runs containers on this machine: to try a job here, import it for SageMaker and `muster run` it"
    )
