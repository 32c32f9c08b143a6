"""Watch a job on a cluster."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing

from muster.api.json_fields import read_mapping, read_string
from muster.cli.board.observed_job import ObservedJob, read_observed_job
from muster.cli.jobs.cluster import ClusterJob
from muster.clients.kubernetes.backoff import compute_backoff_seconds
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import JOBS, Object


class JobDeleted(Exception):
    """The job was deleted during the watch."""


async def get_job(target: ClusterJob) -> ObservedJob:
    """Read the current job. Raises `ApiError`."""
    return read_observed_job(await target.client.get(JOBS, target.namespace, target.name))


async def watch_job(target: ClusterJob) -> AsyncGenerator[ObservedJob]:
    """Yield the current job, and the job after each change. Raises `JobDeleted`, and `ApiError` if it does not exist.

    A job may run for days, and the API server may fail for minutes: retry until it answers.
    """
    resource = await target.client.get(JOBS, target.namespace, target.name)
    uid, failures = read_observed_job(resource).uid, 0
    while True:
        yield read_observed_job(resource)
        try:
            async with aclosing(_watch_changes(target, resource)) as changes:
                async for observed_job in changes:
                    failures = 0
                    yield observed_job
            resource = await target.client.get(JOBS, target.namespace, target.name)
        except ApiError as error:
            if error.is_not_found:
                raise JobDeleted from None
            if not error.is_temporary:
                raise
            await asyncio.sleep(compute_backoff_seconds(failures, error, random.random()))  # noqa: S311 - spreads requests
            failures += 1
        if read_observed_job(resource).uid != uid:
            raise JobDeleted


async def _watch_changes(target: ClusterJob, resource: Object) -> AsyncGenerator[ObservedJob]:
    """Yield the changes since this version of the job, until the API server ends the watch or drops the version."""
    version = read_string(read_mapping(resource.get("metadata")).get("resourceVersion"))
    fields = f"metadata.name={target.name}"
    try:
        async with aclosing(
            target.client.watch(JOBS, target.namespace, resource_version=version, fields=fields)
        ) as changes:
            async for change in changes:
                if change.type == "DELETED":
                    raise JobDeleted
                if change.type != "BOOKMARK":
                    yield read_observed_job(change.object)
    except ApiError as error:
        if not error.is_gone:
            raise
