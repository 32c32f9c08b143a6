"""Follow the output of a job's ranks on a cluster, pod by pod, until the job has ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Protocol

from muster.api.json_fields import read_mapping, read_string
from muster.api.names import JOB_UID_LABEL
from muster.cli.board.observed_job import ObservedJob
from muster.cli.jobs.cluster import ClusterJob
from muster.cli.jobs.pod_log import RETRY_SECONDS, follow_lines, is_pending
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import PODS, Object
from muster.objects.kubernetes.names import NODE_LABEL


class LogOutput(Protocol):
    """Shows the lines of pods, and muster's notes."""

    def print_line(self, pod: str, text: str) -> None:
        """Show a line of a pod's log."""
        ...

    def print_note(self, text: str) -> None:
        """Show a message of muster."""
        ...


@dataclass(frozen=True, order=True)
class JobPod:
    """A pod of the job, in the order of nodes."""

    node: int
    name: str
    is_pending: bool


async def list_pods(target: ClusterJob, observed_job: ObservedJob, node: int | None = None) -> tuple[JobPod, ...]:
    """Return the job's pods, or those of one node, sorted by node."""
    labels = f"{JOB_UID_LABEL}={observed_job.uid}" + ("" if node is None else f",{NODE_LABEL}={node}")
    listing = await target.client.list(PODS, target.namespace, labels=labels)
    return tuple(sorted(map(_read_pod, listing.items)))


async def print_lines(output: LogOutput, pod: str, source: AsyncGenerator[str]) -> None:
    """Show all lines of a pod, or why it has no log."""
    try:
        async with aclosing(source) as lines:
            async for text in lines:
                output.print_line(pod, text)
    except ApiError as error:
        output.print_note(f"[{pod}] no log: {error.message}")


@dataclass
class LogFollower:
    """Follows each pod of the job in a task, from the pod's creation. `tail` is as in `follow_lines`."""

    target: ClusterJob
    tail: int | None
    output: LogOutput
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _is_over: bool = False
    _last_note: str = ""

    async def update(self, observed_job: ObservedJob) -> None:
        """Follow the pods that are new, after a change of the job. Raises `ApiError`."""
        pods = await self._list_pods(observed_job)
        if not self._tasks and all(pod.is_pending for pod in pods) and not observed_job.is_over:
            # explain why there are no lines
            self.print_note(observed_job.status.message)
        for name in (pod.name for pod in pods):
            if name not in self._tasks:
                lines = follow_lines(self.target, name, self.tail, lambda: self._is_over)
                self._tasks[name] = asyncio.create_task(print_lines(self.output, name, lines), name=f"log of {name}")

    def print_note(self, text: str) -> None:
        """Print a message, unless it repeats the last one."""
        if text and text != self._last_note:
            self._last_note = text
            self.output.print_note(text)

    async def wait_for_end(self) -> None:
        """Wait for the remaining lines, until each container's log ends."""
        self._is_over = True
        await asyncio.gather(*self._tasks.values())

    async def _list_pods(self, observed_job: ObservedJob) -> tuple[JobPod, ...]:
        while True:
            try:
                return await list_pods(self.target, observed_job)
            except ApiError as error:
                # The API server may fail for minutes, and the ranks continue.
                if not error.is_temporary:
                    raise
            await asyncio.sleep(RETRY_SECONDS)


def _read_pod(pod: Object) -> JobPod:
    metadata = read_mapping(pod.get("metadata"))
    node = read_string(read_mapping(metadata.get("labels")).get(NODE_LABEL))
    return JobPod(int(node) if node.isdecimal() else 0, read_string(metadata.get("name")), is_pending(pod))
