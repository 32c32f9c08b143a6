"""The part `tenancy` of the operator's configuration: what the jobs of a namespace may use that isn't theirs.

Names are compared as they are, with no patterns: a pattern that was meant for one team's buckets fits others' names,
too, and anybody may make a bucket of any name. `*` alone stands for all, and for nothing but namespaces, buckets and
hosts.
"""

from typing import Annotated

from pydantic import Field

from muster.api.spec.model import Model
from muster.api.spec.sagemaker.spec import ROLE_PATTERN

ALL = "*"
MAX_TENANTS = 1000
MAX_GRANTS = 500

_NAMESPACE = r"^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?|[*])$"
_BUCKET = r"^([a-z0-9][a-z0-9.-]{1,61}[a-z0-9]|[*])$"
_PREFIX = r"^([^/\x00-\x1f\\?#]+/)+$"
_HOST = r"^([a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*(:[0-9]{1,5})?|[*])$"
_AWS_RESOURCE = r"^(arn:aws[a-z-]*:|subnet-|sg-|fs-|alias/|(mrk-)?[0-9a-f]{8,})[A-Za-z0-9:/_.+=,@-]*$"
"""An ARN, or what names subnets, security groups, file systems and keys of KMS without one."""

Namespace = Annotated[str, Field(pattern=_NAMESPACE)]
Prefix = Annotated[str, Field(pattern=_PREFIX, max_length=1024)]
Role = Annotated[str, Field(pattern=ROLE_PATTERN, max_length=2048)]
AwsResource = Annotated[str, Field(pattern=_AWS_RESOURCE, max_length=2048)]
Host = Annotated[str, Field(pattern=_HOST, max_length=260)]


class BucketGrant(Model):
    """A bucket, or folders of it."""

    name: str = Field(description="The bucket; * for all.", pattern=_BUCKET, max_length=63)
    prefixes: Annotated[tuple[Prefix, ...], Field(max_length=MAX_GRANTS)] = Field(
        default=(), description="Only keys that begin with one of these, each of which ends in /; unset: all keys."
    )


class Tenant(Model):
    """What jobs of some namespaces may use. What several entries allow to a namespace is allowed together."""

    namespaces: Annotated[tuple[Namespace, ...], Field(min_length=1, max_length=MAX_GRANTS)] = Field(
        description="Whose jobs; * for all."
    )
    buckets: Annotated[tuple[BucketGrant, ...], Field(max_length=MAX_GRANTS)] = Field(
        default=(), description="Buckets of Amazon S3 that jobs may read and write."
    )
    git_hosts: Annotated[tuple[Host, ...], Field(max_length=MAX_GRANTS)] = Field(
        default=(), description="Hosts that code is fetched from, with the port where it isn't 443; * for all."
    )
    roles: Annotated[tuple[Role, ...], Field(max_length=MAX_GRANTS)] = Field(
        default=(), description="Roles that training jobs may work as: spec.sagemaker.role."
    )
    assume_role_arns: Annotated[tuple[Role, ...], Field(max_length=MAX_GRANTS)] = Field(
        default=(), description="Roles as which muster may create training jobs: spec.sagemaker.assumeRoleArn."
    )
    aws_resources: Annotated[tuple[AwsResource, ...], Field(max_length=MAX_GRANTS)] = Field(
        default=(),
        description="What else of AWS training jobs may name, written as they write it: KMS keys, subnets, security "
        "groups, file systems, training plans, and the AWS Lambda function of a registry.",
    )
