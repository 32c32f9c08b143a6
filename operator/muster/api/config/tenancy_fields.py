"""The fields in which a job may refer to resources outside its namespace, each with its list in `tenancy`.

A test checks that every text field of the spec is in this table or has a documented reason for its absence.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from muster.api import s3_uri
from muster.api.config.default_bucket import build_default_bucket_name
from muster.api.document import JSON, FieldPath, quote
from muster.api.role_arn import parse_account_id
from muster.api.spec.job import Job
from muster.api.spec.sagemaker.block import list_sagemaker_blocks

Allowance = Literal["buckets", "gitHosts", "roles", "assumeRoleArns", "awsResources"]
"""The name of a list in `tenancy`."""

ALLOWANCES: Mapping[str, Allowance] = MappingProxyType(
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
"""The value of this field is a folder in S3, a path in the container, or a keyword."""

_OUTPUT: FieldPath = ("output", "s3")


@dataclass(frozen=True)
class ExternalReference:
    """A field that names an external resource. The list `allowance` in `tenancy` may allow the resource.

    Error messages show `finding`. If muster derives the value from another field, `derived_from` is that field. If the
    tenancy denies both fields, the error lists only `derived_from`.
    """

    path: FieldPath
    value: str
    finding: str
    allowance: Allowance
    derived_from: FieldPath | None = None


def find_external_references(job: Job, default_region: str) -> Iterator[ExternalReference]:
    """Yield the job's external resources, including SageMaker's defaults; `default_region` may be ""."""
    fields: JSON = job.spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    for name, allowance in ALLOWANCES.items():
        for path, value in _find_texts(fields, tuple(name.replace("[]", ".[]").split(".")), ()):
            if name != _MODEL_DIR or value.lower().startswith("s3:"):
                yield ExternalReference(path, value, quote(value), allowance)
    yield from _find_default_references(job, default_region)


def _find_texts(value: JSON, names: tuple[str, ...], path: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    if not names:
        if isinstance(value, str):
            yield path, value
    elif names[0] == "[]":
        for index, item in enumerate(value if isinstance(value, list) else ()):
            yield from _find_texts(item, names[1:], (*path, index))
    elif isinstance(value, dict) and names[0] in value:
        yield from _find_texts(value[names[0]], names[1:], (*path, names[0]))


def _find_default_references(job: Job, default_region: str) -> Iterator[ExternalReference]:
    output = job.spec.output.s3 if job.spec.output is not None else None
    for block in list_sagemaker_blocks(job.spec):
        region = block.region or default_region
        if output is None and block.role is not None and region:
            folder = f"s3://{build_default_bucket_name(region, parse_account_id(block.role))}/"
            yield ExternalReference(_OUTPUT, folder, f"none, so output and code go to {quote(folder)}", "buckets")
        elif output is not None and block.code_location is None and s3_uri.is_s3_uri(output):
            root = f"s3://{s3_uri.parse(output).bucket}/"
            finding = f"none, so the code goes to the root of {quote(root)}"
            yield ExternalReference(("sagemaker", "codeLocation"), root, finding, "buckets", derived_from=_OUTPUT)
