"""A job on a cluster as it changes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing

from muster.api.json_fields import mapping, string
from muster.cli.cluster import Target
from muster.cli.observed_job import ObservedJob, read
from muster.kube.backoff import backoff_seconds
from muster.kube.errors import ApiError
from muster.kube.kinds import JOBS, Object


class JobDeleted(Exception):
    """The job was deleted while it was watched."""


async def look_at(target: Target) -> ObservedJob:
    """The job as it is. Raises `ApiError`."""
    return read(await target.client.get(JOBS, target.namespace, target.name))


async def watch_job(target: Target) -> AsyncGenerator[ObservedJob]:
    """The job as it is, and again after each change. Raises `JobDeleted`, and `ApiError` when it never was there.

    A job may go on for days, and an API server be away for minutes meanwhile: it is asked again until it answers.
    """
    resource = await target.client.get(JOBS, target.namespace, target.name)
    uid, failures = read(resource).uid, 0
    while True:
        yield read(resource)
        try:
            async with aclosing(_changes(target, resource)) as changes:
                async for observed in changes:
                    failures = 0
                    yield observed
            resource = await target.client.get(JOBS, target.namespace, target.name)
        except ApiError as error:
            if error.is_not_found:
                raise JobDeleted from None
            if not error.is_temporary:
                raise
            await asyncio.sleep(backoff_seconds(failures, error, random.random()))  # noqa: S311 - spreads requests
            failures += 1
        if read(resource).uid != uid:
            raise JobDeleted


async def _changes(target: Target, resource: Object) -> AsyncGenerator[ObservedJob]:
    """What happens to the job after this version of it, until the API server ends the watch or has forgotten it."""
    version = string(mapping(resource.get("metadata")).get("resourceVersion"))
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
        if not error.is_gone:
            raise
