"""`muster describe JOB`: what kubectl does not show about a job on a cluster."""

from __future__ import annotations

import time
from collections import deque
from contextlib import aclosing

import typer

from muster.api.names import JOB_UID_LABEL
from muster.cli.board.observed_job import ObservedJob
from muster.cli.board.rank_lines import parse_line
from muster.cli.describe.description import MAX_FAILED_RANKS, describe, list_failed_ranks
from muster.cli.describe.events import EventGroup, group_events, select_pod_events
from muster.cli.describe.observations import JobObservations
from muster.cli.jobs.api_problems import explain_request_error
from muster.cli.jobs.cluster import ClusterJob, run_on_cluster
from muster.cli.jobs.job_reference import JobReference
from muster.cli.jobs.pod_log import read_lines
from muster.cli.jobs.watched_job import get_job
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import EVENTS
from muster.objects.kubernetes.pods import JOB_PODS, PodView, read_pod

LAST_LINES = 8
"""The number of lines of each failed rank."""

_TAIL_LINES = 500
"""The lines of a pod's log in which the failed rank's last lines are searched."""


def describe_job(reference: JobReference) -> int:
    """Print the description; return the exit code. Raises `BadInput`."""
    observations = run_on_cluster(reference, observe)
    for line in describe(observations, time.time()):
        typer.echo(line)
    return 0


async def observe(target: ClusterJob) -> JobObservations:
    """Read the job, and what the user may read of its pods, events and logs. Raises `ApiError` about the job."""
    job = await get_job(target)
    unreadable: list[str] = []
    try:
        pods = await _list_pods(target, job)
    except ApiError as error:
        pods = ()
        unreadable.append(f"the pods can't be read: {explain_request_error(error)}")
    try:
        events = await _list_events(target, job)
    except ApiError as error:
        events = ()
        unreadable.append(f"the events can't be read: {explain_request_error(error)}")
    last_lines = {
        detail.rank: await _read_last_lines(target, detail.pod, detail.rank)
        for detail in list_failed_ranks(job.status)[:MAX_FAILED_RANKS]
        if detail.pod in {pod.name for pod in pods}
    }
    return JobObservations(job, pods, events, last_lines, tuple(unreadable))


async def _list_pods(target: ClusterJob, job: ObservedJob) -> tuple[PodView, ...]:
    listing = await target.client.list(JOB_PODS, target.namespace, labels=f"{JOB_UID_LABEL}={job.uid}")
    pods = (read_pod(item) for item in listing.items)
    own_pods = [pod for pod in pods if pod is not None and pod.job_uid == job.uid]
    return tuple(sorted(own_pods, key=lambda pod: (pod.node, pod.replacement)))


async def _list_events(target: ClusterJob, job: ObservedJob) -> tuple[EventGroup, ...]:
    """Return the events of the job and the Warnings about its pods, also about pods that are deleted."""
    about_job = await target.client.list(EVENTS, target.namespace, fields=f"involvedObject.uid={job.uid}")
    about_pods = await target.client.list(EVENTS, target.namespace, fields="involvedObject.kind=Pod,type=Warning")
    return group_events([*about_job.items, *select_pod_events(about_pods.items, job)])


async def _read_last_lines(target: ClusterJob, pod: str | None, rank: int) -> tuple[str, ...]:
    """Return the rank's last lines in the pod's log; none if the log can't be read."""
    lines: deque[str] = deque(maxlen=LAST_LINES)
    try:
        async with aclosing(read_lines(target, pod or "", _TAIL_LINES)) as texts:
            async for text in texts:
                line = parse_line("", text)
                if line.rank == rank:
                    lines.append(line.text)
    except ApiError as error:
        return (f"no log: {explain_request_error(error)}",)
    return tuple(lines)
