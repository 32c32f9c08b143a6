"""Compute which training job to observe, in which AWS region and with which role. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from muster.api.spec.job import Job, Metadata
from muster.api.spec.sagemaker.block import get_sagemaker_block
from muster.api.status.status import Status
from muster.api.timestamps import parse_timestamp
from muster.core.training_job.attempt_state import get_sagemaker_status
from muster.core.training_job.facts import Location
from muster.core.training_job.name import build_training_job_name
from muster.objects.aws.access import AwsAccess

EXTERNAL_ID_PREFIX = "muster/"

CREATION_MARGIN = timedelta(hours=1)
"""The training job may be older than the last request, because an earlier request created it."""


@dataclass(frozen=True)
class Target:
    """A training job, and the regions and roles `aws_accesses` in which it may exist.

    muster creates a new training job with the last of these. The training job was created after `since`; until
    `may_appear_until` (Unix seconds), it may not exist yet. `arn` is the ARN in the status, if any.
    """

    uid: str
    attempt: int
    name: str
    aws_accesses: tuple[AwsAccess, ...]
    since: datetime
    may_appear_until: float = 0.0
    arn: str | None = None


def get_spec_location(job: Job) -> Location:
    """Return the location of the job's next training job. The region is "" until the defaults are applied."""
    block = get_sagemaker_block(job.spec)
    return Location(block.region or "", block.assume_role_arn)


def find_target(
    metadata: Metadata, previous: Status, attempt: int, location: Location, may_appear_until: float
) -> Target:
    """Return the training job of an attempt in the status; `location` is from the spec."""
    record, name = get_sagemaker_status(previous), build_training_job_name(metadata, attempt)
    arn = None if record is None else record.arn
    return Target(
        metadata.uid,
        attempt,
        name,
        get_aws_accesses(metadata, previous, location),
        compute_earliest_creation_time(metadata.creation_timestamp if record is None else record.tried_at),
        may_appear_until,
        arn if arn is not None and arn.endswith(f"/{name}") else None,
    )


def get_aws_accesses(metadata: Metadata, previous: Status, location: Location) -> tuple[AwsAccess, ...]:
    """Return where the current training job may be: the status' location, and the spec's if it has a region.

    The spec may have another location for the next training job, and users may write a wrong one into the status.
    """
    record = get_sagemaker_status(previous)
    current = () if record is None else (Location(record.region, record.assume_role_arn),)
    result = dict.fromkeys((*current, *((location,) if location.region else ())))
    return tuple(make_aws_access(aws_access, metadata) for aws_access in result)


def make_aws_access(location: Location, metadata: Metadata) -> AwsAccess:
    """Return the region and role for the job's requests to AWS."""
    return make_namespace_access(location.region, location.assume_role_arn, metadata.namespace)


def make_namespace_access(region: str, assume_role_arn: str | None, namespace: str) -> AwsAccess:
    """Return the region and role for requests of a namespace's jobs.

    If `assume_role_arn` is None, muster uses the operator's own credentials.

    No job can choose the external id. So the trust policy of the role controls which namespaces may use it, even if the
    operator's configuration is wrong (IAM User Guide, "The confused deputy problem").
    """
    if assume_role_arn is None:
        return AwsAccess(region)
    return AwsAccess(region, assume_role_arn, f"{EXTERNAL_ID_PREFIX}{namespace}")


def compute_earliest_creation_time(requested_at: str) -> datetime:
    """Return the earliest creation time of a job's training jobs, with a margin for clock differences."""
    return datetime.fromtimestamp(parse_timestamp(requested_at), UTC) - CREATION_MARGIN


def list_remaining_training_jobs(
    metadata: Metadata, previous: Status, deleted_names: Collection[str]
) -> tuple[str, ...]:
    """Return the names of the training jobs of a finished job that may still exist, except those in `deleted_names`."""
    record = get_sagemaker_status(previous)
    if record is None or previous.final_condition is None:
        return ()
    # A training job without a recorded ARN or status may not belong to this job.
    attempts = [earlier.attempt for earlier in record.earlier if earlier.status]
    attempts += [record.attempt] if record.arn is not None else []
    # Compute the names instead of reading them from the status, which users may write.
    names = (build_training_job_name(metadata, attempt) for attempt in attempts)
    return tuple(name for name in names if name not in deleted_names)
