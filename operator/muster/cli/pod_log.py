"""A pod's trainer's output, line by line, followed over connections that break."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from http import HTTPStatus

from muster.api.json_fields import mapping, objects, string
from muster.api.names import TRAINER
from muster.cli.cluster import Target
from muster.kube.client import LogOptions
from muster.kube.errors import ApiError
from muster.kube.kinds import PODS, Object

AGAIN_SECONDS = 1.0
"""A container that hasn't begun has no log, a connection that broke has none for a moment: both are asked again."""


async def read_lines(target: Target, pod: str, tail: int | None) -> AsyncGenerator[str]:
    """What is there now: the last `tail` lines (None: all). Raises `ApiError`, also when it hasn't begun."""
    options = LogOptions(container=TRAINER, tail_lines=tail)
    async with aclosing(_lines(target.client.log(target.namespace, pod, options))) as lines:
        async for line in lines:
            yield line


async def follow_lines(target: Target, pod: str, tail: int | None, is_over: Callable[[], bool]) -> AsyncGenerator[str]:
    """What is there and what comes, until the container has ended or its pod is gone; no line twice.

    `is_over` says that a container that hasn't begun won't do so any more. Raises `ApiError` for a refusal.
    """
    last = ""
    while True:
        try:
            async with aclosing(_stamped(target, pod, tail, last)) as lines:
                async for stamp, text in lines:
                    last = stamp
                    yield text
        except ApiError as error:
            if error.is_not_found:
                return
            # 400: its container hasn't begun
            if not error.is_temporary and error.status != HTTPStatus.BAD_REQUEST:
                raise
        # An API server, a proxy or a kubelet ends a long answer as if that were all.
        if await _is_all(target, pod, is_over):
            return
        await asyncio.sleep(AGAIN_SECONDS)


async def _stamped(target: Target, pod: str, tail: int | None, after: str) -> AsyncGenerator[tuple[str, str]]:
    """Lines with their times, those after a time only."""
    options = LogOptions(
        container=TRAINER,
        follow=True,
        timestamps=True,
        tail_lines=None if after else tail,
        since_time=after or None,
    )
    async with aclosing(_lines(target.client.log(target.namespace, pod, options))) as lines:
        async for line in lines:
            stamp, _, text = line.partition(" ")
            # one kubelet writes all of them, in one time zone, with as many digits
            if stamp > after:
                yield stamp, text


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[str]:
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace")
    if rest:
        yield rest.decode("utf-8", "replace")


async def _is_all(target: Target, pod: str, is_over: Callable[[], bool]) -> bool:
    try:
        stored = await target.client.get(PODS, target.namespace, pod)
    except ApiError as error:
        if not error.is_temporary and not error.is_not_found:
            raise
        return error.is_not_found
    return has_ended(stored) or (is_pending(stored) and is_over())


def is_pending(pod: Object) -> bool:
    """Whether the pod's trainer has not begun: it waits for a machine, an image, volumes or its init containers."""
    return string(mapping(pod.get("status")).get("phase")) == "Pending"


def has_ended(pod: Object) -> bool:
    """Whether the pod's trainer says nothing any more."""
    status = mapping(pod.get("status"))
    if string(status.get("phase")) in ("Succeeded", "Failed"):
        return True
    trainers = (each for each in objects(status.get("containerStatuses")) if each.get("name") == TRAINER)
    return any("terminated" in mapping(each.get("state")) for each in trainers)
