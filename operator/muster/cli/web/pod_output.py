"""The last lines of a rank, from its pod's log."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from http import HTTPStatus

from muster.api.names import TRAINER_CONTAINER
from muster.cli.board.observed_job import ObservedJob
from muster.cli.board.rank_output import RankOutput, read_rank_output
from muster.cli.jobs.cluster import ClusterJob
from muster.cli.jobs.log_follower import list_pods
from muster.clients.kubernetes.client import LogOptions
from muster.objects.kubernetes.errors import ApiError

MAX_BYTES = 1024 * 1024
"""The part of a node's log, at its end, in which the page looks for a rank's lines."""

TAIL_LINES = 5000
MAX_READ_BYTES = 16 * 1024 * 1024
"""The API server sends no more lines than this, and the board reads no more bytes."""

SECONDS = 10.0


async def read_pod_output(target: ClusterJob, job: ObservedJob, node: int, rank: int) -> RankOutput:
    """Return a rank's last output, from the newest pod of its node; nothing if there is none. Raises `ApiError`."""
    # A pod's name ends with the number of its replacement.
    names = sorted((len(pod.name), pod.name) for pod in await list_pods(target, job, node) if not pod.is_pending)
    if not names:
        return RankOutput()
    lines = (await _read_end(target, names[-1][1])).decode("utf-8", "replace").split("\n")
    return await asyncio.to_thread(read_rank_output, f"{job.name}-{node}", rank, lines)


async def _read_end(target: ClusterJob, pod: str) -> bytes:
    """Return the whole lines at the end of a pod's log."""
    options = LogOptions(container=TRAINER_CONTAINER, tail_lines=TAIL_LINES)
    end, size = bytearray(), 0
    try:
        async with asyncio.timeout(SECONDS), aclosing(target.client.log(target.namespace, pod, options)) as chunks:
            async for chunk in chunks:
                size += len(chunk)
                end += chunk
                if len(end) > 2 * MAX_BYTES:
                    del end[:-MAX_BYTES]
                if size > MAX_READ_BYTES:
                    break
    except TimeoutError:
        pass
    except ApiError as error:
        if error.status != HTTPStatus.BAD_REQUEST:
            raise
        return b""  # its container has not started
    return bytes(end) if size <= MAX_BYTES else bytes(end[-MAX_BYTES:]).partition(b"\n")[2]
