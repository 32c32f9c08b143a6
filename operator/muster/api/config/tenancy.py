"""Check that a job uses only what the operator's configuration allows in its namespace. Pure."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from muster.api import s3_uri
from muster.api.config.tenancy_fields import Allowance, Use, used
from muster.api.config.tenancy_spec import ALL, BucketGrant, Tenant
from muster.api.document import shown
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.spec.job import Job

_HTTPS_PORT = ":443"

_WORDS: Mapping[Allowance, str] = MappingProxyType(
    {
        "buckets": "this location in S3",
        "gitHosts": "this host",
        "roles": "this role",
        "assumeRoleArns": "this role",
        "awsResources": "this AWS resource",
    }
)


def check(job: Job, tenants: Sequence[Tenant], default_region: str) -> None:
    """Raise `InvalidResource` with every field whose value is not allowed in the job's namespace.

    `default_region` applies to jobs without a region; "" for none.
    """
    namespace = job.metadata.namespace
    own = [tenant for tenant in tenants if namespace in tenant.namespaces or ALL in tenant.namespaces]
    refused = [use for use in used(job, default_region) if not _is_allowed(use, own)]
    paths = {use.path for use in refused}
    problems = tuple(
        FieldProblem(shown(("spec", *use.path)), f"found {use.finding}; {_sentence(use.by, namespace)}")
        for use in refused
        if use.follows not in paths
    )
    if problems:
        raise InvalidResource(problems)


def names_git_host(namespace: str, url: str, tenants: Sequence[Tenant]) -> bool:
    """Whether a URL's host is listed explicitly for a namespace, not only by `*`."""
    own = [tenant for tenant in tenants if namespace in tenant.namespaces or ALL in tenant.namespaces]
    return any(_host(url) in tenant.git_hosts for tenant in own)


def _sentence(by: Allowance, namespace: str) -> str:
    remedy = f"ask the operator's administrator to add it to tenancy[].{by}"
    return f"{_WORDS[by]} is not allowed in namespace {namespace}: {remedy}"


def _is_allowed(use: Use, own: Sequence[Tenant]) -> bool:
    match use.by:
        case "buckets":
            return _may_use(use.value, [grant for tenant in own for grant in tenant.buckets])
        case "gitHosts":
            host = _host(use.value)
            return any(host in tenant.git_hosts or ALL in tenant.git_hosts for tenant in own)
        case "roles":
            return any(use.value in tenant.roles for tenant in own)
        case "assumeRoleArns":
            return any(use.value in tenant.assume_role_arns for tenant in own)
        case "awsResources":
            return any(use.value in tenant.aws_resources for tenant in own)


def _may_use(uri: str, grants: Sequence[BucketGrant]) -> bool:
    try:
        place = s3_uri.parse(uri)
    except s3_uri.NotS3:
        return False
    return any(
        # a prefix ends in /: otherwise s3://b/team-a would match s3://b/team-abc, too
        not grant.prefixes or any(place.key.startswith(prefix) for prefix in grant.prefixes)
        for grant in grants
        if grant.name in (place.bucket, ALL)
    )


def _host(url: str) -> str:
    # the spec's rules allow only lower-case letters, and a port
    return url.removeprefix("https://").partition("/")[0].removesuffix(_HTTPS_PORT)
