"""`muster suspend`, `resume` and `restart`: change a job on a cluster, and wait until the operator has done it."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import IO, TypeAlias, cast

from rich.console import Console

from muster.api.document import JSON
from muster.api.json_fields import read_mapping, read_string
from muster.api.names import KIND, RESTART_ANNOTATION
from muster.api.status.status import REFUSED
from muster.api.timestamps import format_timestamp_milliseconds
from muster.cli.board.observed_job import ObservedJob, build_view, read_observed_job
from muster.cli.display import LineDisplay
from muster.cli.errors import BadInput
from muster.cli.jobs.cluster import ClusterJob, JobReference, run_on_cluster
from muster.cli.jobs.wait import FAILED, TIMED_OUT
from muster.cli.jobs.watched_job import JobDeleted, watch_job
from muster.cli.run.summary import is_complete
from muster.cli.standard_error import StandardError
from muster.objects.kubernetes.kinds import JOBS, Object


@dataclass(frozen=True)
class Waiting:
    """Whether to wait until the operator has done what was requested, and for how long at most (None: no limit)."""

    is_wanted: bool = True
    timeout: float | None = None


@dataclass(frozen=True)
class Change:
    """A change of a job: the fields to merge into its resource, and when it is done.

    `requested` and `done` are sentences without their subject: "will be suspended", "is suspended". `find_refusal`
    finds the operator's reason why it does not do it.
    """

    fields: dict[str, JSON]
    requested: str
    done: str
    is_done: Callable[[ObservedJob], bool]
    find_refusal: Callable[[ObservedJob], str | None] = lambda _: None


def suspend_job(wanted: JobReference, waiting: Waiting) -> int:
    """Suspend the job. Return the exit code."""
    return _request(wanted, waiting, make_suspension)


def resume_job(wanted: JobReference, waiting: Waiting) -> int:
    """Resume the suspended job. Return the exit code."""
    return _request(wanted, waiting, make_resumption)


def restart_job(wanted: JobReference, waiting: Waiting) -> int:
    """Start the job's ranks again in the same pods. Return the exit code."""
    return _request(
        wanted, waiting, lambda resource: make_restart(resource, format_timestamp_milliseconds(time.time()))
    )


def make_suspension(resource: Object) -> Change:
    """Return the change that suspends the job. Raises `BadInput`."""
    _reject_ended(read_observed_job(resource), "nothing of it can be suspended")
    return Change({"spec": {"suspend": True}}, "will be suspended", "is suspended", _is_suspended)


def make_resumption(resource: Object) -> Change:
    """Return the change that resumes the job. Raises `BadInput`."""
    observed = read_observed_job(resource)
    _reject_ended(observed, "it can't be resumed; delete it and apply it again")
    if read_mapping(resource.get("spec")).get("suspend") is not True:
        raise BadInput(f"{KIND} {observed.name} is not suspended ({observed.status.phase}: {observed.status.message})")
    return Change({"spec": {"suspend": False}}, "will be resumed", "is resumed", _runs)


def make_restart(resource: Object, value: str) -> Change:
    """Return the change that requests a restart. `value` is the annotation's new value. Raises `BadInput`."""
    observed = read_observed_job(resource)
    name, spec = observed.name, read_mapping(resource.get("spec"))
    _reject_ended(observed, "it can't be restarted; delete it and apply it again")
    if spec.get("backend") == "SageMaker":
        raise BadInput(
            f"{KIND} {name} runs on SageMaker, where another attempt needs another training job: "
            f"`muster suspend {name}`, then `muster resume {name}`"
        )
    if spec.get("suspend") is True:
        raise BadInput(f"{KIND} {name} is suspended; `muster resume {name}` starts its ranks")
    if not observed.status.was_ever_started:
        phase, message = observed.status.phase, observed.status.message
        raise BadInput(f"the ranks of {KIND} {name} have not started yet ({phase}: {message})")
    fields: dict[str, JSON] = {"metadata": {"annotations": {RESTART_ANNOTATION: value}}}

    def is_done(job: ObservedJob) -> bool:
        request = job.status.restart_request
        return request is not None and request.value == value and not request.is_pending and _runs(job)

    return Change(fields, "will be restarted", "runs again", is_done)


def _reject_ended(observed: ObservedJob, consequence: str) -> None:
    if observed.is_over:
        raise BadInput(f"{KIND} {observed.name} has ended ({observed.status.phase}), so {consequence}")


def _is_suspended(observed: ObservedJob) -> bool:
    """Whether the job is suspended by its current spec, and not by one before it was resumed."""
    return observed.status.observed_generation >= observed.generation and observed.status.is_suspended


def _runs(observed: ObservedJob) -> bool:
    """Whether all ranks run, as the operator has observed them for the current spec."""
    status = observed.status
    if status.observed_generation < observed.generation or status.phase != "Running" or status.ranks is None:
        return False
    return status.ranks.running == status.ranks.world


Prepare: TypeAlias = Callable[[ClusterJob, Object, Callable[[str], None]], Awaitable[Change]]
"""Makes the change of a job's resource, and what it needs on the cluster. The last argument prints a note."""

TidyUp: TypeAlias = Callable[[ClusterJob, Object], Awaitable[None]]


def _request(wanted: JobReference, waiting: Waiting, make_change: Callable[[Object], Change]) -> int:
    async def prepare(_: ClusterJob, resource: Object, __: Callable[[str], None]) -> Change:
        return make_change(resource)

    return request_change(wanted, waiting, prepare)


def request_change(wanted: JobReference, waiting: Waiting, prepare: Prepare, tidy_up: TidyUp | None = None) -> int:
    """Change the job, and wait until the operator has done it; then `tidy_up`. Return the exit code."""
    console = Console(file=cast(IO[str], StandardError(sys.stderr)), highlight=False)

    async def request(target: ClusterJob) -> int:
        started_at = time.monotonic()
        before = await target.client.get(JOBS, target.namespace, target.name)
        change = await prepare(target, before, lambda note: console.print(note, soft_wrap=True, markup=False))
        await _apply(target, before, change)
        if not waiting.is_wanted:
            console.print(f"{target} {change.requested}", soft_wrap=True)
            return 0
        try:
            async with asyncio.timeout(waiting.timeout):
                result = await _wait_until_done(target, change, LineDisplay(console))
        except TimeoutError:
            console.print(f"{target} {change.requested}, but not within {waiting.timeout:g} s", soft_wrap=True)
            return TIMED_OUT
        if result == 0:
            if tidy_up is not None:
                await tidy_up(target, before)
            console.print(f"{target} {change.done} ({time.monotonic() - started_at:.1f} s)", soft_wrap=True)
        return result

    return run_on_cluster(wanted, request)


async def _apply(target: ClusterJob, before: Object, change: Change) -> None:
    """Merge the change's fields into the resource. Raises `ApiError`."""
    # Another job of the same name may have replaced the one that was read.
    metadata: dict[str, JSON] = {"uid": read_string(read_mapping(before.get("metadata")).get("uid"))}
    fields = {**change.fields, "metadata": {**read_mapping(change.fields.get("metadata")), **metadata}}
    await target.client.merge(JOBS, target.namespace, target.name, fields)


async def _wait_until_done(target: ClusterJob, change: Change, display: LineDisplay) -> int:
    """Show the job's messages until the change is done. Return 1 if the job ends without it."""
    try:
        async with aclosing(watch_job(target)) as jobs:
            async for observed in jobs:
                if change.is_done(observed):
                    return 0
                display.show(build_view(observed, time.time()))
                refusal = change.find_refusal(observed)
                if refusal is not None:
                    display.note(refusal)
                    return FAILED
                if observed.is_over or (observed.status.phase == REFUSED and observed.is_refused):
                    display.close(build_view(observed, time.time()))
                    return 0 if is_complete(observed.status) else FAILED
    except JobDeleted:
        display.note(f"{target} was deleted")
    return FAILED
