"""The fields in which a job may name resources outside its namespace, and the list in `tenancy` that allows each.

A test compares every text field of the spec with this table, and has the reason for each field that is missing here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from muster.api import s3_uri
from muster.api.config.default_bucket import default_bucket
from muster.api.document import JSON, Path, quoted
from muster.api.role_arn import account_of
from muster.api.spec.job import Job
from muster.api.spec.sagemaker.block import sagemaker_blocks

Allowance = Literal["buckets", "gitHosts", "roles", "assumeRoleArns", "awsResources"]
"""The name of a list in `tenancy`."""

LISTED: Mapping[str, Allowance] = MappingProxyType(
    {
        "source.s3.uri": "buckets",
        "source.git.url": "gitHosts",
        "inputs[].s3.uri": "buckets",
        "inputs[].sagemaker.fileSystem.id": "awsResources",
        "checkpoint.s3": "buckets",
        "output.s3": "buckets",
        "sagemaker.role": "roles",
        "sagemaker.assumeRoleArn": "assumeRoleArns",
        "sagemaker.codeLocation": "buckets",
        "sagemaker.framework.modelDir": "buckets",
        "sagemaker.debugger.s3": "buckets",
        "sagemaker.debugger.rules[].s3": "buckets",
        "sagemaker.profiler.s3": "buckets",
        "sagemaker.profiler.rules[].s3": "buckets",
        "sagemaker.tensorBoard.s3": "buckets",
        "sagemaker.outputKmsKey": "awsResources",
        "sagemaker.volumeKmsKey": "awsResources",
        "sagemaker.trainingPlanArn": "awsResources",
        "sagemaker.vpc.subnets[]": "awsResources",
        "sagemaker.vpc.securityGroupIds[]": "awsResources",
        "sagemaker.imageRepository.credentialsProviderArn": "awsResources",
    }
)

_MODEL_DIR = "sagemaker.framework.modelDir"
"""A path in the container, or a keyword, if it isn't a folder in S3."""

_OUTPUT: Path = ("output", "s3")


@dataclass(frozen=True)
class Use:
    """A field that names something; `finding` describes it in an error, `by` is the list that may allow it.

    `follows` is the field from which muster derives this one: if that isn't allowed, the error names only that.
    """

    path: Path
    value: str
    finding: str
    by: Allowance
    follows: Path | None = None


def used(job: Job, default_region: str) -> Iterator[Use]:
    """Find all that the job names or leaves to SageMaker's defaults. `default_region` is the operator's, or ""."""
    fields: JSON = job.spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    for name, allowance in LISTED.items():
        for path, value in _texts(fields, tuple(name.replace("[]", ".[]").split(".")), ()):
            if name != _MODEL_DIR or value.lower().startswith("s3:"):
                yield Use(path, value, quoted(value), allowance)
    yield from _left_to_sagemaker(job, default_region)


def _texts(value: JSON, names: tuple[str, ...], path: Path) -> Iterator[tuple[Path, str]]:
    if not names:
        if isinstance(value, str):
            yield path, value
    elif names[0] == "[]":
        for index, item in enumerate(value if isinstance(value, list) else ()):
            yield from _texts(item, names[1:], (*path, index))
    elif isinstance(value, dict) and names[0] in value:
        yield from _texts(value[names[0]], names[1:], (*path, names[0]))


def _left_to_sagemaker(job: Job, default_region: str) -> Iterator[Use]:
    output = job.spec.output.s3 if job.spec.output is not None else None
    for block in sagemaker_blocks(job.spec):
        region = block.region or default_region
        if output is None and block.role is not None and region:
            place = f"s3://{default_bucket(region, account_of(block.role))}/"
            yield Use(_OUTPUT, place, f"none, so that output and code lie in {quoted(place)}", "buckets")
        elif output is not None and block.code_location is None and s3_uri.is_s3(output):
            root = f"s3://{s3_uri.parse(output).bucket}/"
            result = f"none, so that the code lies in the root of {quoted(root)}"
            yield Use(("sagemaker", "codeLocation"), root, result, "buckets", follows=_OUTPUT)
