"""Check that a job uses only what the operator's configuration allows in its namespace. Pure."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from muster.api import s3_uri
from muster.api.config.tenancy_fields import Allowance, ExternalReference, find_external_references
from muster.api.config.tenancy_spec import ALL, BucketGrant, Tenant
from muster.api.document import format_path
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.spec.job import Job

_HTTPS_PORT = ":443"

_DESCRIPTIONS: Mapping[Allowance, str] = MappingProxyType(
    {
        "buckets": "this location in S3",
        "gitHosts": "this host",
        "roles": "this role",
        "assumeRoleArns": "this role",
        "awsResources": "this AWS resource",
    }
)


def check_tenancy(job: Job, tenants: Sequence[Tenant], default_region: str) -> None:
    """Raise `InvalidResource` with every field whose value the job's namespace does not allow.

    `default_region` applies to jobs without a region; "" means that the operator has none.
    """
    namespace = job.metadata.namespace
    tenants_of_namespace = [tenant for tenant in tenants if namespace in tenant.namespaces or ALL in tenant.namespaces]
    denied_references = [
        reference
        for reference in find_external_references(job, default_region)
        if not _is_allowed(reference, tenants_of_namespace)
    ]
    denied_paths = {reference.path for reference in denied_references}
    problems = tuple(
        FieldProblem(
            format_path(("spec", *reference.path)),
            f"found {reference.finding}; {_describe_denial(reference.allowance, namespace)}",
        )
        for reference in denied_references
        if reference.derived_from not in denied_paths
    )
    if problems:
        raise InvalidResource(problems)


def is_git_host_listed(namespace: str, url: str, tenants: Sequence[Tenant]) -> bool:
    """Whether the configuration allows the URL's host in the namespace by name, and not only by `*`."""
    tenants_of_namespace = [tenant for tenant in tenants if namespace in tenant.namespaces or ALL in tenant.namespaces]
    return any(_parse_host(url) in tenant.git_hosts for tenant in tenants_of_namespace)


def _describe_denial(allowance: Allowance, namespace: str) -> str:
    remedy = f"ask the operator's administrator to add it to tenancy[].{allowance}"
    return f"{_DESCRIPTIONS[allowance]} is not allowed in namespace {namespace}: {remedy}"


def _is_allowed(reference: ExternalReference, tenants_of_namespace: Sequence[Tenant]) -> bool:
    match reference.allowance:
        case "buckets":
            return _is_bucket_allowed(
                reference.value, [grant for tenant in tenants_of_namespace for grant in tenant.buckets]
            )
        case "gitHosts":
            host = _parse_host(reference.value)
            return any(host in tenant.git_hosts or ALL in tenant.git_hosts for tenant in tenants_of_namespace)
        case "roles":
            return any(reference.value in tenant.roles for tenant in tenants_of_namespace)
        case "assumeRoleArns":
            return any(reference.value in tenant.assume_role_arns for tenant in tenants_of_namespace)
        case "awsResources":
            return any(reference.value in tenant.aws_resources for tenant in tenants_of_namespace)


def _is_bucket_allowed(uri: str, grants: Sequence[BucketGrant]) -> bool:
    try:
        location = s3_uri.parse(uri)
    except s3_uri.InvalidS3Uri:
        return False
    return any(
        # Prefixes end in /: without it, team-a would also match team-abc.
        not grant.prefixes or any(location.key.startswith(prefix) for prefix in grant.prefixes)
        for grant in grants
        if grant.name in (location.bucket, ALL)
    )


def _parse_host(url: str) -> str:
    # The rules for spec.source.git.url allow only a lower-case host and a port.
    return url.removeprefix("https://").partition("/")[0].removesuffix(_HTTPS_PORT)
