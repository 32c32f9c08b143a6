"""Which training job is looked for, and where. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from muster.api.spec.job import Job, Metadata
from muster.api.spec.sagemaker.block import block_of
from muster.api.status.status import Status
from muster.api.timestamps import from_text
from muster.core.training_job.course import sagemaker_status_of
from muster.core.training_job.facts import Location
from muster.core.training_job.name import training_job_name
from muster.objects.aws.place import Place

EXTERNAL_ID_PREFIX = "muster/"

SINCE = timedelta(hours=1)
"""An earlier request may have made the training job that the last one found there."""


@dataclass(frozen=True)
class Target:
    """A training job, and where it may be: `places`, in the last of which one is made now.

    `since`: it was made no earlier. `arrives_until`: a request to make it may be under way until then (Unix seconds).
    `arn` is the job's own training job's, as far as the status tells.
    """

    uid: str
    attempt: int
    name: str
    places: tuple[Place, ...]
    since: datetime
    arrives_until: float = 0.0
    arn: str | None = None


def location(job: Job) -> Location:
    """Where the job's next training job is made; its region is known once it is taken as it runs."""
    block = block_of(job.spec)
    return Location(block.region or "", block.assume_role_arn)


def target_of(metadata: Metadata, previous: Status, attempt: int, where: Location, arrives_until: float) -> Target:
    """The training job of an attempt that the status tells of; `where` is the spec's place."""
    record, name = sagemaker_status_of(previous), training_job_name(metadata, attempt)
    arn = None if record is None else record.arn
    return Target(
        metadata.uid,
        attempt,
        name,
        places_of(metadata, previous, where),
        since(metadata.creation_timestamp if record is None else record.tried_at),
        arrives_until,
        arn if arn is not None and arn.endswith(f"/{name}") else None,
    )


def places_of(metadata: Metadata, previous: Status, where: Location) -> tuple[Place, ...]:
    """Where the present training job may be: where the status has it, and at `where`, the spec's; no region: nowhere.

    The spec may name another place since, for the next one, and the status what isn't so: others may write it, too.
    """
    record = sagemaker_status_of(previous)
    current = () if record is None else (Location(record.region, record.assume_role_arn),)
    result = dict.fromkeys((*current, *((where,) if where.region else ())))
    return tuple(place_of(each, metadata) for each in result)


def place_of(where: Location, metadata: Metadata) -> Place:
    """The same, as AWS is asked there for this job."""
    return asked_from(where.region, where.assume_role_arn, metadata.namespace)


def asked_from(region: str, assume_role_arn: str | None, namespace: str) -> Place:
    """The place of a namespace's jobs; `assume_role_arn` None: as the operator itself.

    The external id is made here and no job can say another one. So the role's owner decides in its trust policy
    for which namespaces muster gets in, whatever the operator's configuration allows by mistake (IAM User Guide, "The
    confused deputy problem").
    """
    if assume_role_arn is None:
        return Place(region)
    return Place(region, assume_role_arn, f"{EXTERNAL_ID_PREFIX}{namespace}")


def since(asked_at: str) -> datetime:
    """No training job of a job's was made before, by any clock, if it was asked for then at the earliest."""
    return datetime.fromtimestamp(from_text(asked_at), UTC) - SINCE


def remains_of(metadata: Metadata, previous: Status, forgotten: Collection[str]) -> tuple[str, ...]:
    """The names of the training jobs that there may still be of a job that is over, but for those `forgotten`."""
    record = sagemaker_status_of(previous)
    if record is None or previous.final_condition is None:
        return ()
    # One that was never seen as the job's own may be somebody else's, of the same name.
    attempts = [one.attempt for one in record.earlier if one.status]
    attempts += [record.attempt] if record.arn is not None else []
    # Made anew: others may write the status, too.
    names = (training_job_name(metadata, attempt) for attempt in attempts)
    return tuple(name for name in names if name not in forgotten)
