"""The operator's configuration file: node pools, SageMaker, storage and tenancy."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import BaseModel, Field, ValidationError
from pydantic.alias_generators import to_camel

from muster.api.config.sagemaker import AwsEndpoints, SageMakerConfig, Url
from muster.api.config.tenancy_spec import MAX_TENANTS, BucketGrant, Tenant
from muster.api.document import JSON, Document, FieldPath, format_path, quote
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.spec.model import Model
from muster.api.spec.node_pool import ONE_TYPE_MESSAGE, LabelKey, NamedPool, find_type_conflict
from muster.api.validation.messages import build_message, build_unknown_field_message, describe_value


class StorageConfig(Model):
    """The S3 endpoint of the containers that copy files in jobs' pods."""

    s3_endpoint: Url | None = Field(default=None, description="The endpoint that jobs' pods use instead of Amazon S3.")


class DisruptionConfig(Model):
    """How the cluster announces the end of a Kubernetes node. Without taints, muster reads no Kubernetes nodes."""

    taints: tuple[LabelKey, ...] = Field(
        default=(), max_length=32, description="The keys of taints that announce the end of a Kubernetes node."
    )


MAX_POOLS = 500

_FIELDS = ("disruptions", "nodePools", "sagemaker", "storage", "tenancy")
_DISRUPTION_FIELDS = tuple(DisruptionConfig.model_fields)
_SAGEMAKER_FIELDS = tuple(SageMakerConfig.model_fields)
_ENDPOINTS = tuple(AwsEndpoints.model_fields)
_STORAGE_FIELDS = tuple(to_camel(name) for name in StorageConfig.model_fields)
_TENANT_FIELDS = tuple(to_camel(name) for name in Tenant.model_fields)
_BUCKET_FIELDS = tuple(BucketGrant.model_fields)
_JOB_POOL_PATH: FieldPath = ("spec", "nodePool")
"""The path of a pool in a job. Messages use its descriptions, because a configured pool has the same fields."""

_Problem = tuple[FieldPath, str]

_Block = TypeVar("_Block", bound=BaseModel)


@dataclass(frozen=True)
class OperatorConfig:
    """The content of the configuration file."""

    node_pools: tuple[NamedPool, ...] = ()
    sagemaker: SageMakerConfig = field(default_factory=SageMakerConfig)
    storage: StorageConfig = field(default_factory=StorageConfig)
    tenancy: tuple[Tenant, ...] = ()
    disruptions: DisruptionConfig = field(default_factory=DisruptionConfig)


def read_config(document: Document) -> OperatorConfig:
    """Read the configuration from a document. Raise `InvalidResource` with every problem and its field."""
    value = document.value
    pools: list[NamedPool] = []
    sagemaker: list[SageMakerConfig] = []
    storage: list[StorageConfig] = []
    tenants: list[Tenant] = []
    disruptions: list[DisruptionConfig] = []
    problems = (
        *_read_node_pools(value, pools),
        *_read_sagemaker(value, sagemaker),
        *_read_storage(value, storage),
        *_read_tenancy(value, tenants),
        *_read_disruptions(value, disruptions),
    )
    if problems:
        raise InvalidResource(
            tuple(FieldProblem(format_path(path), message, document.find_line(path)) for path, message in problems),
            document.source,
        )
    return OperatorConfig(
        node_pools=tuple(pools),
        sagemaker=sagemaker[0] if sagemaker else SageMakerConfig(),
        storage=storage[0] if storage else StorageConfig(),
        tenancy=tuple(tenants),
        disruptions=disruptions[0] if disruptions else DisruptionConfig(),
    )


def _read_node_pools(value: JSON, pools: list[NamedPool]) -> Iterator[_Problem]:
    """Yield the problems of the pools and of unknown fields; append the valid pools to `pools`."""
    if not isinstance(value, dict):
        yield (), f"found {describe_value(value)}; fields are expected: {', '.join(_FIELDS)}"
        return
    yield from (((key,), build_unknown_field_message(key, _FIELDS)) for key in value if key not in _FIELDS)
    entries = value.get("nodePools")
    if entries is None:
        return
    if not isinstance(entries, list) or len(entries) > MAX_POOLS:
        yield ("nodePools",), f"found {describe_value(entries)}; a list of at most {MAX_POOLS} pools is expected"
        return
    for index, entry in enumerate(entries):
        yield from _read_pool(("nodePools", index), entry, pools)


def _read_sagemaker(value: JSON, valid_blocks: list[SageMakerConfig]) -> Iterator[_Problem]:
    block = value.get("sagemaker") if isinstance(value, dict) else None
    if block is not None:
        yield from _read_block(SageMakerConfig, ("sagemaker",), block, valid_blocks, (_SAGEMAKER_FIELDS, _ENDPOINTS))


def _read_storage(value: JSON, valid_blocks: list[StorageConfig]) -> Iterator[_Problem]:
    block = value.get("storage") if isinstance(value, dict) else None
    if block is not None:
        yield from _read_block(StorageConfig, ("storage",), block, valid_blocks, (_STORAGE_FIELDS, ()))


def _read_disruptions(value: JSON, valid_blocks: list[DisruptionConfig]) -> Iterator[_Problem]:
    block = value.get("disruptions") if isinstance(value, dict) else None
    if block is not None:
        yield from _read_block(DisruptionConfig, ("disruptions",), block, valid_blocks, (_DISRUPTION_FIELDS, ()))


def _read_tenancy(value: JSON, valid_blocks: list[Tenant]) -> Iterator[_Problem]:
    entries = value.get("tenancy") if isinstance(value, dict) else None
    if entries is None:
        return
    if not isinstance(entries, list) or len(entries) > MAX_TENANTS:
        yield ("tenancy",), f"found {describe_value(entries)}; a list of at most {MAX_TENANTS} entries is expected"
        return
    for index, entry in enumerate(entries):
        yield from _read_block(Tenant, ("tenancy", index), entry, valid_blocks, (_TENANT_FIELDS, _BUCKET_FIELDS))


def _read_block(
    model: type[_Block],
    path: FieldPath,
    block: JSON,
    valid_blocks: list[_Block],
    field_names: tuple[Sequence[str], Sequence[str]],
) -> Iterator[_Problem]:
    """Yield a block's problems, or append the block to `valid_blocks`.

    `field_names` are the names of the block's fields, and the names of its nested blocks' fields.
    """
    try:
        valid_blocks.append(model.model_validate_json(json.dumps(block), by_alias=True, by_name=False))
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            field_path: FieldPath = (*path, *detail["loc"])
            # For an unknown field, `build_message` would suggest fields of a job.
            is_unknown = detail["type"] == "extra_forbidden"
            names = field_names[0] if len(detail["loc"]) == 1 else field_names[1]
            yield (
                field_path,
                build_unknown_field_message(str(field_path[-1]), names)
                if is_unknown
                else build_message(field_path, [detail]),
            )


def _read_pool(path: FieldPath, entry: JSON, pools: list[NamedPool]) -> Iterator[_Problem]:
    try:
        # Validate JSON text: pydantic's strict mode rejects Python lists for tuples.
        pool = NamedPool.model_validate_json(json.dumps(entry), by_alias=True, by_name=False)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            yield (*path, *detail["loc"]), build_message((*_JOB_POOL_PATH, *detail["loc"]), [detail])
        return
    type_conflict = find_type_conflict(pool)
    if type_conflict is not None:
        yield path, f"found {type_conflict}; {ONE_TYPE_MESSAGE}"
    if any(pool.name == existing.name for existing in pools):
        yield (*path, "name"), f"found {quote(pool.name)} twice; jobs refer to pools by name, so names must be unique"
    pools.append(pool)
