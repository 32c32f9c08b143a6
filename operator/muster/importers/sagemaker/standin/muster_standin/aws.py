"""The stand-in for boto3. It returns account, role and region. Every other result is an unknown value."""

from __future__ import annotations

from .account import find_partition
from .arguments import bind_arguments
from .errors import UnsupportedOperation
from .state import get_state
from .unknown import UnknownValue

_SESSION_PARAMETERS = (
    "aws_access_key_id",
    "aws_secret_access_key",
    "aws_session_token",
    "region_name",
    "botocore_session",
    "profile_name",
    "aws_account_id",
)
"""The parameters of boto3.Session in order (boto3 1.43)."""


class BotoSession:
    """Replaces boto3.Session. Its clients send no requests."""

    def __init__(self, *positional: object, **keywords: object) -> None:
        arguments = bind_arguments("boto3.Session", _SESSION_PARAMETERS, positional, keywords)
        region = arguments.get("region_name")
        self.configured_region = str(region) if region is not None else None

    @property
    def region_name(self) -> str:
        return self.configured_region or get_state().account_options.require_region("boto3.Session().region_name")

    def client(self, service_name: str, *_: object, **__: object) -> Sts | Iam | UnknownValue:
        return client(service_name)

    def resource(self, service_name: str, *_: object, **__: object) -> UnknownValue:
        return get_state().create_unknown(f"boto3.resource({service_name!r})")

    def __getattr__(self, name: str) -> UnknownValue:
        if name.startswith("__"):
            raise AttributeError(name)
        return get_state().create_unknown(f"boto3.Session().{name}")


class Sts:
    """Replaces the client of AWS STS, for the caller's identity."""

    def get_caller_identity(self) -> dict[str, object]:
        call = "sts.get_caller_identity()"
        identity: dict[str, object] = {"Account": get_state().account_options.require_account(call)}
        identity["Arn"] = get_state().account_options.role or get_state().create_unknown(f"{call}['Arn']")
        identity["UserId"] = get_state().create_unknown(f"{call}['UserId']")
        return identity

    def __getattr__(self, name: str) -> UnknownValue:
        if name.startswith("__"):
            raise AttributeError(name)
        return get_state().create_unknown(f"boto3.client('sts').{name}")


class Iam:
    """Replaces the client of AWS IAM, with which notebooks look up a role's ARN."""

    def get_role(self, *, RoleName: str) -> dict[str, dict[str, str]]:  # noqa: N803 - boto3's name
        return {"Role": {"RoleName": RoleName, "Arn": build_role_arn(RoleName)}}

    def __getattr__(self, name: str) -> UnknownValue:
        if name.startswith("__"):
            raise AttributeError(name)
        return get_state().create_unknown(f"boto3.client('iam').{name}")


def client(service_name: str, *_: object, **__: object) -> Sts | Iam | UnknownValue:
    """Replaces boto3.client."""
    if service_name == "sts":
        return Sts()
    if service_name == "iam":
        return Iam()
    return get_state().create_unknown(f"boto3.client({service_name!r})")


def resource(service_name: str, *_: object, **__: object) -> UnknownValue:
    """Replaces boto3.resource."""
    return get_state().create_unknown(f"boto3.resource({service_name!r})")


def build_role_arn(role: str) -> str:
    """Return the ARN of a role. A name without slashes means a role without a path."""
    if "/" in role:
        return role
    options = get_state().account_options
    account, region = options.require_account(f"the role {role}"), options.require_region(f"the role {role}")
    arn = f"arn:{find_partition(region)}:iam::{account}:role/{role}"
    if arn != options.role:
        get_state().recorder.warn(f"muster uses {arn} for the role {role}; if the role has a path, write its ARN")
    return arn


class ClientError(Exception):
    """Replaces botocore's ClientError in `except ClientError`."""


class NoCredentialsError(Exception):
    """Replaces botocore's NoCredentialsError."""


def reject_local_mode(*_: object, **__: object) -> object:
    """Raise `UnsupportedOperation`, because muster can't import jobs in local mode."""
    raise UnsupportedOperation(
        "local mode runs containers on this machine: import the job for SageMaker and use `muster run` to run it here"
    )
