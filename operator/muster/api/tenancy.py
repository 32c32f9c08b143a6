"""Whether a job uses only what the operator's configuration allows to its namespace. Pure."""

from collections.abc import Iterator, Sequence

from muster.api import s3_uri
from muster.api.document import JSON, Path, quoted, shown
from muster.api.problems import InvalidResource, Problem
from muster.api.spec import Job
from muster.api.tenancy_spec import ALL, BucketGrant, Tenant

_HTTPS_PORT = ":443"
_Used = tuple[Path, str]


def check(job: Job, tenants: Sequence[Tenant]) -> None:
    """Raises `InvalidResource` with every field that names what isn't allowed to the job's namespace."""
    namespace = job.metadata.namespace
    own = [tenant for tenant in tenants if namespace in tenant.namespaces or ALL in tenant.namespaces]
    problems = tuple(
        Problem(shown(("spec", *path)), f"found {found}; {_sentence(what, field, namespace)}")
        for path, found, what, field in _refused(job, own)
    )
    if problems:
        raise InvalidResource(problems)


def _sentence(what: str, field: str, namespace: str) -> str:
    listed = f"whoever runs the operator lists it there, in tenancy[].{field}"
    return f"{what} is not allowed to namespace {namespace}: {listed}"


def _refused(job: Job, own: Sequence[Tenant]) -> Iterator[tuple[Path, str, str, str]]:
    grants = [grant for tenant in own for grant in tenant.buckets]
    for path, uri in s3_places(job):
        if not _may_use(uri, grants):
            yield path, quoted(uri), "that place in S3", "buckets"
    output = _code_follows(job)
    root = None if output is None else f"s3://{s3_uri.parse(output).bucket}/"
    # of an output that isn't allowed enough is said
    if output is not None and root is not None and _may_use(output, grants) and not _may_use(root, grants):
        found = f"none, so that the code lies in the root of {quoted(root)}"
        yield ("sagemaker", "codeLocation"), found, "that place in S3", "buckets"
    host = _git_host(job)
    if host is not None and not any(host in tenant.git_hosts or ALL in tenant.git_hosts for tenant in own):
        yield ("source", "git", "url"), quoted(host), "that host", "gitHosts"
    block = job.spec.sagemaker
    if block is None:
        return
    if block.role is not None and not any(block.role in tenant.roles for tenant in own):
        yield ("sagemaker", "role"), quoted(block.role), "that role", "roles"
    arn = block.assume_role_arn
    if arn is not None and not any(arn in tenant.assume_role_arns for tenant in own):
        yield ("sagemaker", "assumeRoleArn"), quoted(arn), "that role", "assumeRoleArns"


def s3_places(job: Job) -> Iterator[_Used]:
    """Every place in S3 that a job names, wherever in it."""
    fields: dict[str, JSON] = job.spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    for name in ("inputs", "checkpoint", "output", "sagemaker"):
        yield from _uris((name,), fields.get(name))
    source = job.spec.source
    if source is not None and source.s3 is not None:
        yield ("source", "s3", "uri"), source.s3.uri


def _code_follows(job: Job) -> str | None:
    """The output in whose bucket, at its root, muster puts code for SageMaker that has no place of its own."""
    spec = job.spec
    if spec.backend != "SageMaker" or spec.output is None or spec.output.s3 is None:
        return None
    if spec.sagemaker is None or spec.sagemaker.code_location is not None or not s3_uri.is_s3(spec.output.s3):
        return None
    return spec.output.s3


def _uris(path: Path, value: JSON) -> Iterator[_Used]:
    if isinstance(value, str) and value.lower().startswith("s3:"):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _uris((*path, key), item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _uris((*path, index), item)


def _may_use(uri: str, grants: Sequence[BucketGrant]) -> bool:
    try:
        place = s3_uri.parse(uri)
    except s3_uri.NotS3:
        return False
    return any(
        # a prefix ends in /: without one at its end, s3://b/team-a stands for s3://b/team-abc, too
        not grant.prefixes or any(place.key.startswith(prefix) for prefix in grant.prefixes)
        for grant in grants
        if grant.name in (place.bucket, ALL)
    )


def _git_host(job: Job) -> str | None:
    source = job.spec.source
    if source is None or source.git is None:
        return None
    # what a rule of the spec lets through: a host of small letters, and a port
    return source.git.url.removeprefix("https://").partition("/")[0].removesuffix(_HTTPS_PORT)
