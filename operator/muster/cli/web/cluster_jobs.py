"""The jobs of a cluster for the page: of one namespace or of all, read with the user's own rights."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from muster.cli.board.frame import Frame
from muster.cli.board.rank_output import RankOutput
from muster.cli.board.view import find_node
from muster.cli.errors import BadInput
from muster.cli.jobs.api_problems import explain_list_error, explain_request_error
from muster.cli.jobs.cluster import ClusterJob
from muster.cli.jobs.logs import reject_training_job
from muster.cli.web.job_frames import JobFrames, ShownJob
from muster.cli.web.job_list import SHOWN_JOBS, JobList
from muster.cli.web.pod_output import read_pod_output
from muster.cli.web.source import JobEntry, JobNotFound, NotShown
from muster.clients.kubernetes.client import Client
from muster.clients.kubernetes.informer import Informer
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.job_source import JOB_IDENTITIES


@dataclass(frozen=True)
class ClusterJobs:
    """The jobs in `jobs`, which a watch keeps up to date. `client` reads their frames and logs."""

    client: Client
    jobs: JobList
    frames: JobFrames

    async def list_jobs(self) -> Sequence[JobEntry]:
        """Return the newest jobs."""
        return self.jobs.list_newest()

    async def read_frame(self, key: str) -> Frame:
        """Return the job's newest frame. Raises `JobNotFound` and `NotShown`."""
        return (await self.frames.read(self.jobs.find(key))).frame

    async def read_rank(self, key: str, rank: int) -> RankOutput:
        """Return the rank's last output, from its pod's log. Raises `JobNotFound` and `NotShown`."""
        listed = self.jobs.find(key)
        shown = await self.frames.read(listed)
        node = find_rank_node(shown, rank)
        target = ClusterJob(self.client, listed.namespace, listed.name)
        try:
            reject_training_job(shown.job)
            return await read_pod_output(target, shown.job, node, rank)
        except BadInput as error:
            raise NotShown(str(error)) from None
        except ApiError as error:
            raise NotShown(explain_request_error(error)) from None


def find_rank_node(shown: ShownJob, rank: int) -> int:
    """Return the node of a rank. Raises `JobNotFound` for a rank that the job doesn't have."""
    frame = shown.frame
    if not 0 <= rank < frame.world:
        raise JobNotFound(f"{frame.name} has no rank {rank}")
    return find_node(frame.members, rank // frame.procs_per_node)


@asynccontextmanager
async def watch_jobs(client: Client, namespace: str | None) -> AsyncIterator[ClusterJobs]:
    """Watch the jobs of a namespace (None: of all) in the `with` block. Raises `BadInput` if it can't list them."""
    try:
        # The informer would retry for ever, which hides that the user lacks the right.
        await client.list(JOB_IDENTITIES, namespace)
    except ApiError as error:
        raise BadInput(explain_list_error(error)) from None
    jobs = JobList()
    informer = Informer(client, SHOWN_JOBS, () if namespace is None else (namespace,), jobs.take)
    watch = asyncio.create_task(informer.run(), name="the watch of jobs")
    try:
        await informer.synced.wait()
        yield ClusterJobs(client, jobs, JobFrames(client))
    finally:
        watch.cancel()
        with suppress(asyncio.CancelledError):
            await watch
