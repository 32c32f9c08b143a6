"""Read the output of a pod's trainer container line by line, across broken connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from http import HTTPStatus

from muster.api.json_fields import read_mapping, read_mappings, read_string
from muster.api.names import TRAINER_CONTAINER
from muster.cli.jobs.cluster import ClusterJob
from muster.clients.kubernetes.client import LogOptions
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import PODS, Object

RETRY_SECONDS = 1.0
"""The time before the next request if the container has not started, or the connection broke."""


async def read_lines(target: ClusterJob, pod: str, tail: int | None) -> AsyncGenerator[str]:
    """Yield the current lines: the last `tail` (None: all). Raises `ApiError`, also before the container starts."""
    options = LogOptions(container=TRAINER_CONTAINER, tail_lines=tail)
    async with aclosing(_split_lines(target.client.log(target.namespace, pod, options))) as lines:
        async for line in lines:
            yield line


async def follow_lines(
    target: ClusterJob, pod: str, tail: int | None, is_over: Callable[[], bool]
) -> AsyncGenerator[str]:
    """Yield current and new lines, each once, until the container has ended or its pod is deleted.

    `is_over` returns whether the job has ended, so that a waiting container will not start. Raises `ApiError` if the
    API server rejects the request.
    """
    last = ""
    while True:
        try:
            async with aclosing(_read_timestamped(target, pod, tail, last)) as lines:
                async for stamp, text in lines:
                    last = stamp
                    yield text
        except ApiError as error:
            if error.is_not_found:
                return
            # 400: its container has not started
            if not error.is_temporary and error.status != HTTPStatus.BAD_REQUEST:
                raise
        # An API server, a proxy or a kubelet may end a long response early.
        if await _is_log_complete(target, pod, is_over):
            return
        await asyncio.sleep(RETRY_SECONDS)


async def _read_timestamped(
    target: ClusterJob, pod: str, tail: int | None, after: str
) -> AsyncGenerator[tuple[str, str]]:
    """Yield lines with their times, after the time `after`."""
    options = LogOptions(
        container=TRAINER_CONTAINER,
        follow=True,
        timestamps=True,
        tail_lines=None if after else tail,
        since_time=after or None,
    )
    async with aclosing(_split_lines(target.client.log(target.namespace, pod, options))) as lines:
        async for line in lines:
            stamp, _, text = line.partition(" ")
            # one kubelet writes the timestamps, in one time zone and format, so they can be compared as text
            if stamp > after:
                yield stamp, text


async def _split_lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[str]:
    incomplete = b""
    async for chunk in chunks:
        *whole, incomplete = (incomplete + chunk).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace")
    if incomplete:
        yield incomplete.decode("utf-8", "replace")


async def _is_log_complete(target: ClusterJob, pod: str, is_over: Callable[[], bool]) -> bool:
    try:
        pod_object = await target.client.get(PODS, target.namespace, pod)
    except ApiError as error:
        if not error.is_temporary and not error.is_not_found:
            raise
        return error.is_not_found
    return has_ended(pod_object) or (is_pending(pod_object) and is_over())


def is_pending(pod: Object) -> bool:
    """Whether the pod's trainer has not started: it waits for scheduling, an image, volumes or init containers."""
    return read_string(read_mapping(pod.get("status")).get("phase")) == "Pending"


def has_ended(pod: Object) -> bool:
    """Whether the pod's trainer has ended."""
    status = read_mapping(pod.get("status"))
    if read_string(status.get("phase")) in ("Succeeded", "Failed"):
        return True
    trainers = (
        container
        for container in read_mappings(status.get("containerStatuses"))
        if container.get("name") == TRAINER_CONTAINER
    )
    return any("terminated" in read_mapping(container.get("state")) for container in trainers)
