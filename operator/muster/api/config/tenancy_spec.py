"""The field `tenancy` of the operator's configuration: the external resources that jobs of a namespace may use.

muster compares values literally. Patterns would be unsafe, because any AWS user can create a bucket whose name matches
a team's pattern. Only namespaces, buckets and hosts accept `*`, which means all.
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
"""An ARN, or an id of a subnet, security group, file system or KMS key."""

Namespace = Annotated[str, Field(pattern=_NAMESPACE)]
Prefix = Annotated[str, Field(pattern=_PREFIX, max_length=1024)]
Role = Annotated[str, Field(pattern=ROLE_PATTERN, max_length=2048)]
AwsResource = Annotated[str, Field(pattern=_AWS_RESOURCE, max_length=2048)]
Host = Annotated[str, Field(pattern=_HOST, max_length=260)]


class BucketGrant(Model):
    """A bucket, or folders of a bucket."""

    name: str = Field(description="The bucket's name; * means all buckets.", pattern=_BUCKET, max_length=63)
    prefixes: Annotated[tuple[Prefix, ...], Field(max_length=MAX_GRANTS)] = Field(
        default=(), description="The allowed key prefixes, each of which ends in /. If unset, all keys are allowed."
    )


class Tenant(Model):
    """The external resources that jobs of these namespaces may use. muster combines all entries for a namespace."""

    namespaces: Annotated[tuple[Namespace, ...], Field(min_length=1, max_length=MAX_GRANTS)] = Field(
        description="The namespaces; * means all namespaces."
    )
    buckets: Annotated[tuple[BucketGrant, ...], Field(max_length=MAX_GRANTS)] = Field(
        default=(), description="The buckets of Amazon S3 that jobs may read and write."
    )
    git_hosts: Annotated[tuple[Host, ...], Field(max_length=MAX_GRANTS)] = Field(
        default=(), description="The hosts for spec.source.git, each with its port unless that is 443; * means all."
    )
    roles: Annotated[tuple[Role, ...], Field(max_length=MAX_GRANTS)] = Field(
        default=(), description="The IAM roles that jobs may use as spec.sagemaker.role."
    )
    assume_role_arns: Annotated[tuple[Role, ...], Field(max_length=MAX_GRANTS)] = Field(
        default=(), description="The IAM roles that jobs may use as spec.sagemaker.assumeRoleArn."
    )
    aws_resources: Annotated[tuple[AwsResource, ...], Field(max_length=MAX_GRANTS)] = Field(
        default=(),
        description="Other AWS resources that jobs may use, as jobs write them: KMS keys, subnets, "
        "security groups, file systems, training plans, and the AWS Lambda function of a registry.",
    )
