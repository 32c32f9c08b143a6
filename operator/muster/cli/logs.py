"""`muster logs JOB`: what the ranks of a job on a cluster print, each line with its rank."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field

from rich.console import Console

from muster.backends.kubernetes.names import JOB_UID_LABEL, NODE_LABEL, TRAINER
from muster.cli.cluster import Target, Wanted, ask_cluster
from muster.cli.problem import BadInput
from muster.cli.rank_lines import coloured, is_wanted, read_line, uncoloured
from muster.cli.watched_job import JobDeleted, Seen, watch_job
from muster.kube.client import LogOptions
from muster.kube.errors import NO_ANSWER, ApiError
from muster.kube.kinds import PODS, Object

_AGAIN_SECONDS = 1.0
"""A container that hasn't begun has no log; it is asked again after so long."""


@dataclass(frozen=True)
class Asked:
    """Which lines: of these ranks (none: all, and their launchers), the last `tail` of each node (None: all)."""

    ranks: frozenset[int] = frozenset()
    tail: int | None = None


def show_logs(wanted: Wanted, asked: Asked) -> int:
    """Print what is there now."""

    async def show(target: Target) -> int:
        seen = await _first(target)
        pods = await _pods(target, seen)
        if not pods:
            raise BadInput(f"{target} has no pods{_why_none(seen)}")
        console = Console(file=sys.stdout, highlight=False)
        for pod in pods:
            options = LogOptions(container=TRAINER, tail_lines=asked.tail)
            try:
                await _print(target, pod, options, asked, console)
            except ApiError as error:
                console.print(f"[{_name(pod)}] no log: {error.message}", markup=False, soft_wrap=True, style="dim")
        return 0

    return ask_cluster(wanted, show)


def follow_logs(wanted: Wanted, asked: Asked) -> int:
    """Print what is there and what comes, until the job is over."""

    async def follow(target: Target) -> int:
        following = _Following(target, asked, Console(file=sys.stdout, highlight=False))
        try:
            async with aclosing(watch_job(target)) as jobs:
                async for seen in jobs:
                    await following.look(seen)
                    if seen.is_over:
                        break
        except JobDeleted:
            pass
        await following.finish()
        return 0

    return ask_cluster(wanted, follow)


@dataclass
class _Following:
    """A task for each pod of the job, begun when the pod is seen."""

    target: Target
    asked: Asked
    console: Console
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _over: asyncio.Event = field(default_factory=asyncio.Event)

    async def look(self, seen: Seen) -> None:
        for pod in await _pods(self.target, seen):
            name = _name(pod)
            if name not in self._tasks:
                self._tasks[name] = asyncio.create_task(self._follow(pod), name=f"log of {name}")

    async def finish(self) -> None:
        """Wait for the rest: a log that is followed ends with its container."""
        self._over.set()
        await asyncio.gather(*self._tasks.values())

    async def _follow(self, pod: Object) -> None:
        options = LogOptions(container=TRAINER, follow=True, tail_lines=self.asked.tail)
        while True:
            try:
                await _print(self.target, pod, options, self.asked, self.console)
            except ApiError as error:
                # gone with its log, or it never began before the job ended
                if error.is_not_found or error.status == NO_ANSWER or self._over.is_set():
                    return
                await asyncio.sleep(_AGAIN_SECONDS)
            else:
                return


async def _first(target: Target) -> Seen:
    async with aclosing(watch_job(target)) as jobs:
        return await anext(jobs)


async def _pods(target: Target, seen: Seen) -> list[Object]:
    """The job's pods, node by node."""
    listing = await target.client.list(PODS, target.namespace, labels=f"{JOB_UID_LABEL}={seen.uid}")
    return sorted(listing.items, key=lambda pod: (int(_labels(pod).get(NODE_LABEL, "0")), _name(pod)))


async def _print(target: Target, pod: Object, options: LogOptions, asked: Asked, console: Console) -> None:
    async with aclosing(_lines(target.client.log(target.namespace, _name(pod), options))) as lines:
        async for text in lines:
            line = read_line(_name(pod), text)
            if not is_wanted(line, asked.ranks):
                continue
            if console.is_terminal:
                console.print(coloured(line), soft_wrap=True)
            else:
                console.out(uncoloured(line), highlight=False)


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[str]:
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace")
    if rest:
        yield rest.decode("utf-8", "replace")


def _why_none(seen: Seen) -> str:
    if seen.is_over:
        return " any more: they were deleted when it was over (spec.cleanup)"
    return f": {seen.status.message}" if seen.status.message else " yet"


def _name(pod: Object) -> str:
    metadata = pod.get("metadata")
    return str(metadata.get("name")) if isinstance(metadata, dict) else ""


def _labels(pod: Object) -> dict[str, str]:
    metadata = pod.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return {key: str(value) for key, value in labels.items()} if isinstance(labels, dict) else {}
