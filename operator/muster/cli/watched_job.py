"""A job on a cluster as it changes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from muster.api.document import Document
from muster.api.problems import InvalidResource
from muster.api.spec import Job
from muster.api.status import Status
from muster.api.status_reader import status_of
from muster.api.validate import validate
from muster.cli.cluster import Target
from muster.kube.errors import NO_ANSWER, ApiError
from muster.kube.kinds import JOBS, Object
from muster.plan.outcome import final_condition


class JobDeleted(Exception):
    """Somebody deleted the job while it was watched."""


@dataclass(frozen=True)
class Seen:
    """A job at one moment. `job` is None while its spec is not valid: the status says what is wrong."""

    resource: Object
    job: Job | None
    status: Status

    @property
    def uid(self) -> str:
        """The resource's uid."""
        metadata = self.resource.get("metadata")
        return str(metadata.get("uid", "")) if isinstance(metadata, dict) else ""

    @property
    def is_over(self) -> bool:
        """Whether nothing about it will change any more."""
        return final_condition(self.status) is not None


def read(resource: Object) -> Seen:
    """A resource as the API server gives it."""
    status = status_of(resource)
    try:
        job = validate(Document(dict(resource)))
    except InvalidResource:
        return Seen(resource, None, status)
    return Seen(resource, _with_procs(job, status), status)


async def watch_job(target: Target) -> AsyncGenerator[Seen]:
    """The job as it is, and again after each change. Raises `JobDeleted`, and `ApiError` when it never was there."""
    first = True
    while True:
        try:
            resource = await target.client.get(JOBS, target.namespace, target.name)
        except ApiError as error:
            if error.is_not_found and not first:
                raise JobDeleted from None
            raise
        first = False
        yield read(resource)
        async with aclosing(_changes(target, _version(resource))) as changes:
            async for seen in changes:
                yield seen


async def _changes(target: Target, version: str) -> AsyncGenerator[Seen]:
    """What happens to the job until the API server ends the watch, or has forgotten where it began."""
    fields = f"metadata.name={target.name}"
    try:
        async with aclosing(
            target.client.watch(JOBS, target.namespace, resource_version=version, fields=fields)
        ) as changes:
            async for change in changes:
                if change.type == "DELETED":
                    raise JobDeleted
                if change.type != "BOOKMARK":
                    yield read(change.object)
    except ApiError as error:
        if not (error.is_gone or error.status == NO_ANSWER):
            raise


def _version(resource: Object) -> str:
    metadata = resource.get("metadata")
    return str(metadata.get("resourceVersion", "")) if isinstance(metadata, dict) else ""


def _with_procs(job: Job, status: Status) -> Job:
    """The job with `procsPerNode: Auto` as the operator resolved it: its world is in the status."""
    if job.spec.procs_per_node != "Auto":
        return job
    procs = max(1, status.ranks.world // job.spec.nodes) if status.ranks is not None else 1
    return job.model_copy(update={"spec": job.spec.model_copy(update={"procs_per_node": procs})})
