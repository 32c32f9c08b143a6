"""The stand-in for boto3. It returns account, role and region. Every other result is an unknown value."""

from __future__ import annotations

from .account import partition
from .arguments import bind_arguments
from .errors import Unsupported
from .state import current_state
from .unknown import Unknown

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
        return self.configured_region or current_state().account_options.require_region("boto3.Session().region_name")

    def client(self, service_name: str, *_: object, **__: object) -> Sts | Iam | Unknown:
        return client(service_name)

    def resource(self, service_name: str, *_: object, **__: object) -> Unknown:
        return current_state().unknown(f"boto3.resource({service_name!r})")

    def __getattr__(self, name: str) -> Unknown:
        if name.startswith("__"):
            raise AttributeError(name)
        return current_state().unknown(f"boto3.Session().{name}")


class Sts:
    """Replaces the client of AWS STS, for the caller's identity."""

    def get_caller_identity(self) -> dict[str, object]:
        call = "sts.get_caller_identity()"
        identity: dict[str, object] = {"Account": current_state().account_options.require_account(call)}
        identity["Arn"] = current_state().account_options.role or current_state().unknown(f"{call}['Arn']")
        identity["UserId"] = current_state().unknown(f"{call}['UserId']")
        return identity

    def __getattr__(self, name: str) -> Unknown:
        if name.startswith("__"):
            raise AttributeError(name)
        return current_state().unknown(f"boto3.client('sts').{name}")


class Iam:
    """Replaces the client of AWS IAM, with which notebooks look up a role's ARN."""

    def get_role(self, *, RoleName: str) -> dict[str, dict[str, str]]:  # noqa: N803 - boto3's name
        return {"Role": {"RoleName": RoleName, "Arn": role_arn(RoleName)}}

    def __getattr__(self, name: str) -> Unknown:
        if name.startswith("__"):
            raise AttributeError(name)
        return current_state().unknown(f"boto3.client('iam').{name}")


def client(service_name: str, *_: object, **__: object) -> Sts | Iam | Unknown:
    """Replaces boto3.client."""
    if service_name == "sts":
        return Sts()
    if service_name == "iam":
        return Iam()
    return current_state().unknown(f"boto3.client({service_name!r})")


def resource(service_name: str, *_: object, **__: object) -> Unknown:
    """Replaces boto3.resource."""
    return current_state().unknown(f"boto3.resource({service_name!r})")


def role_arn(role: str) -> str:
    """Return the ARN of a role. A name without slashes means a role without a path."""
    if "/" in role:
        return role
    options = current_state().account_options
    account, region = options.require_account(f"the role {role}"), options.require_region(f"the role {role}")
    arn = f"arn:{partition(region)}:iam::{account}:role/{role}"
    if arn != options.role:
        current_state().recorder.warn(f"muster uses {arn} for the role {role}; if the role has a path, write its ARN")
    return arn


class ClientError(Exception):
    """Replaces botocore's ClientError in `except ClientError`."""


class NoCredentialsError(Exception):
    """Replaces botocore's NoCredentialsError."""


def reject_local_mode(*_: object, **__: object) -> object:
    """Raise `Unsupported`, because muster can't import jobs in local mode."""
    raise Unsupported(
        "local mode runs containers on this machine: import the job for SageMaker and use `muster run` to run it here"
    )
