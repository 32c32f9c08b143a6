"""The operator's configuration file: node pools, SageMaker, storage and tenancy."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import BaseModel, Field, ValidationError
from pydantic.alias_generators import to_camel

from muster.api.config.sagemaker import AwsEndpoints, SageMakerConfig, Url
from muster.api.config.tenancy_spec import MAX_TENANTS, BucketGrant, Tenant
from muster.api.document import JSON, Document, Path, quoted, shown
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.spec.model import Model
from muster.api.spec.node_pool import ONE_TYPE, NamedPool, two_types
from muster.api.validation.sentences import describe_value, sentence, unknown_field


class StorageConfig(Model):
    """Where S3 is for the containers that copy files in jobs' pods."""

    s3_endpoint: Url | None = Field(
        default=None, description="Instead of Amazon S3, for the pods of jobs on this cluster."
    )


MAX_POOLS = 500

_FIELDS = ("nodePools", "sagemaker", "storage", "tenancy")
_SAGEMAKER_FIELDS = tuple(SageMakerConfig.model_fields)
_ENDPOINTS = tuple(AwsEndpoints.model_fields)
_STORAGE_FIELDS = tuple(to_camel(name) for name in StorageConfig.model_fields)
_TENANT_FIELDS = tuple(to_camel(name) for name in Tenant.model_fields)
_BUCKET_FIELDS = tuple(BucketGrant.model_fields)
_AS_IN_A_JOB: Path = ("spec", "nodePool")
"""A pool has the same fields there, so that messages name those."""

_Finding = tuple[Path, str]

_Block = TypeVar("_Block", bound=BaseModel)


@dataclass(frozen=True)
class OperatorConfig:
    """The configuration file's content, in its order."""

    node_pools: tuple[NamedPool, ...] = ()
    sagemaker: SageMakerConfig = field(default_factory=SageMakerConfig)
    storage: StorageConfig = field(default_factory=StorageConfig)
    tenancy: tuple[Tenant, ...] = ()


def read_config(document: Document) -> OperatorConfig:
    """Read the configuration from a document. Raises `InvalidResource` with every problem and its field."""
    value = document.value
    pools: list[NamedPool] = []
    sagemaker: list[SageMakerConfig] = []
    storage: list[StorageConfig] = []
    tenants: list[Tenant] = []
    findings = (
        *_findings(value, pools),
        *_sagemaker(value, sagemaker),
        *_storage(value, storage),
        *_tenancy(value, tenants),
    )
    if findings:
        problems = tuple(FieldProblem(shown(path), message, document.line(path)) for path, message in findings)
        raise InvalidResource(problems, document.source)
    return OperatorConfig(
        node_pools=tuple(pools),
        sagemaker=sagemaker[0] if sagemaker else SageMakerConfig(),
        storage=storage[0] if storage else StorageConfig(),
        tenancy=tuple(tenants),
    )


def _findings(value: JSON, pools: list[NamedPool]) -> Iterator[_Finding]:
    """Find the problems; append valid pools to `pools`."""
    if not isinstance(value, dict):
        yield (), f"found {describe_value(value)}; fields are expected: {', '.join(_FIELDS)}"
        return
    yield from (((key,), unknown_field(key, _FIELDS)) for key in value if key not in _FIELDS)
    entries = value.get("nodePools")
    if entries is None:
        return
    if not isinstance(entries, list) or len(entries) > MAX_POOLS:
        yield ("nodePools",), f"found {describe_value(entries)}; a list of at most {MAX_POOLS} pools is expected"
        return
    for index, entry in enumerate(entries):
        yield from _pool(("nodePools", index), entry, pools)


def _sagemaker(value: JSON, right: list[SageMakerConfig]) -> Iterator[_Finding]:
    block = value.get("sagemaker") if isinstance(value, dict) else None
    if block is not None:
        yield from _read(SageMakerConfig, ("sagemaker",), block, right, (_SAGEMAKER_FIELDS, _ENDPOINTS))


def _storage(value: JSON, right: list[StorageConfig]) -> Iterator[_Finding]:
    block = value.get("storage") if isinstance(value, dict) else None
    if block is not None:
        yield from _read(StorageConfig, ("storage",), block, right, (_STORAGE_FIELDS, ()))


def _tenancy(value: JSON, right: list[Tenant]) -> Iterator[_Finding]:
    entries = value.get("tenancy") if isinstance(value, dict) else None
    if entries is None:
        return
    if not isinstance(entries, list) or len(entries) > MAX_TENANTS:
        yield ("tenancy",), f"found {describe_value(entries)}; a list of at most {MAX_TENANTS} entries is expected"
        return
    for index, entry in enumerate(entries):
        yield from _read(Tenant, ("tenancy", index), entry, right, (_TENANT_FIELDS, _BUCKET_FIELDS))


def _read(
    model: type[_Block], path: Path, block: JSON, right: list[_Block], field_names: tuple[Sequence[str], Sequence[str]]
) -> Iterator[_Finding]:
    """Find the problems of a block; append a valid one to `right`. `field_names`: of the block, and of its blocks."""
    try:
        right.append(model.model_validate_json(json.dumps(block), by_alias=True, by_name=False))
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            place: Path = (*path, *detail["loc"])
            # `sentence` suggests a job's fields, not these.
            is_unknown = detail["type"] == "extra_forbidden"
            names = field_names[0] if len(detail["loc"]) == 1 else field_names[1]
            yield place, unknown_field(str(place[-1]), names) if is_unknown else sentence(place, [detail])


def _pool(path: Path, entry: JSON, pools: list[NamedPool]) -> Iterator[_Finding]:
    try:
        # From JSON, where a list is a tuple's only form; strict refuses Python's lists.
        pool = NamedPool.model_validate_json(json.dumps(entry), by_alias=True, by_name=False)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            yield (*path, *detail["loc"]), sentence((*_AS_IN_A_JOB, *detail["loc"]), [detail])
        return
    contradiction = two_types(pool)
    if contradiction is not None:
        yield path, f"found {contradiction}; {ONE_TYPE}"
    if any(pool.name == other.name for other in pools):
        yield (*path, "name"), f"found {quoted(pool.name)} twice; jobs name a pool by it, so that each needs its own"
    pools.append(pool)
