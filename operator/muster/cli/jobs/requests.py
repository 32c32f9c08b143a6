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
from muster.cli.jobs.cluster import ClusterJob, run_on_cluster
from muster.cli.jobs.job_reference import JobReference
from muster.cli.jobs.wait import FAILED, TIMED_OUT
from muster.cli.jobs.watched_job import JobDeleted, watch_job
from muster.cli.run.summary import is_complete
from muster.cli.standard_error import StandardError
from muster.objects.kubernetes.kinds import JOBS, Object


@dataclass(frozen=True)
class WaitOptions:
    """Whether to wait until the operator has made the requested change, and the timeout in seconds (None: no limit)."""

    waits: bool = True
    timeout: float | None = None


@dataclass(frozen=True)
class RequestedChange:
    """A change of a job: the fields to merge into its resource, and a check that the change is done.

    `requested_text` and `done_text` are sentences without their subject: "will be suspended", "is suspended".
    `find_refusal` returns the operator's reason for refusing the change; None if it has not refused it.
    """

    fields: dict[str, JSON]
    requested_text: str
    done_text: str
    is_done: Callable[[ObservedJob], bool]
    find_refusal: Callable[[ObservedJob], str | None] = lambda _: None


def suspend_job(reference: JobReference, wait_options: WaitOptions) -> int:
    """Suspend the job. Return the exit code."""
    return _request_simple_change(reference, wait_options, make_suspension)


def resume_job(reference: JobReference, wait_options: WaitOptions) -> int:
    """Resume the suspended job. Return the exit code."""
    return _request_simple_change(reference, wait_options, make_resumption)


def restart_job(reference: JobReference, wait_options: WaitOptions) -> int:
    """Start the job's ranks again in the same pods. Return the exit code."""
    return _request_simple_change(
        reference, wait_options, lambda resource: make_restart(resource, format_timestamp_milliseconds(time.time()))
    )


def make_suspension(resource: Object) -> RequestedChange:
    """Return the change that suspends the job. Raises `BadInput`."""
    _reject_ended(read_observed_job(resource), "it can't be suspended")
    return RequestedChange({"spec": {"suspend": True}}, "will be suspended", "is suspended", _is_suspended)


def make_resumption(resource: Object) -> RequestedChange:
    """Return the change that resumes the job. Raises `BadInput`."""
    observed_job = read_observed_job(resource)
    _reject_ended(observed_job, "it can't be resumed; delete it and apply it again")
    if read_mapping(resource.get("spec")).get("suspend") is not True:
        raise BadInput(
            f"{KIND} {observed_job.name} is not suspended ({observed_job.status.phase}: {observed_job.status.message})"
        )
    return RequestedChange({"spec": {"suspend": False}}, "will be resumed", "is resumed", _all_ranks_run)


def make_restart(resource: Object, annotation_value: str) -> RequestedChange:
    """Return the change that requests a restart. `annotation_value` is new for each request. Raises `BadInput`."""
    observed_job = read_observed_job(resource)
    name, spec = observed_job.name, read_mapping(resource.get("spec"))
    _reject_ended(observed_job, "it can't be restarted; delete it and apply it again")
    if spec.get("backend") == "SageMaker":
        raise BadInput(
            f"{KIND} {name} runs on SageMaker, where another attempt needs another training job: "
            f"`muster suspend {name}`, then `muster resume {name}`"
        )
    if spec.get("suspend") is True:
        raise BadInput(f"{KIND} {name} is suspended; `muster resume {name}` starts its ranks")
    if not observed_job.status.was_ever_started:
        phase, message = observed_job.status.phase, observed_job.status.message
        raise BadInput(f"the ranks of {KIND} {name} have not started yet ({phase}: {message})")
    fields: dict[str, JSON] = {"metadata": {"annotations": {RESTART_ANNOTATION: annotation_value}}}

    def is_done(job: ObservedJob) -> bool:
        request = job.status.restart_request
        if request is None or request.value != annotation_value or request.is_pending:
            return False
        return _all_ranks_run(job)

    return RequestedChange(fields, "will be restarted", "runs again", is_done)


def _reject_ended(observed_job: ObservedJob, consequence: str) -> None:
    if observed_job.is_over:
        raise BadInput(f"{KIND} {observed_job.name} has ended ({observed_job.status.phase}), so {consequence}")


def _is_suspended(observed_job: ObservedJob) -> bool:
    """Whether the job is suspended because of its current spec, not because of an earlier one."""
    return observed_job.status.observed_generation >= observed_job.generation and observed_job.status.is_suspended


def _all_ranks_run(observed_job: ObservedJob) -> bool:
    """Whether the operator has observed that all ranks run with the current spec."""
    status = observed_job.status
    if status.observed_generation < observed_job.generation or status.phase != "Running" or status.ranks is None:
        return False
    return status.ranks.running == status.ranks.world


PrepareChange: TypeAlias = Callable[[ClusterJob, Object, Callable[[str], None]], Awaitable[RequestedChange]]
"""Returns the change of a job's resource, and creates the objects that it needs. The last argument prints a note."""

CleanUp: TypeAlias = Callable[[ClusterJob, Object], Awaitable[None]]


def _request_simple_change(
    reference: JobReference, wait_options: WaitOptions, make_change: Callable[[Object], RequestedChange]
) -> int:
    async def prepare(_: ClusterJob, resource: Object, __: Callable[[str], None]) -> RequestedChange:
        return make_change(resource)

    return request_change(reference, wait_options, prepare)


def request_change(
    reference: JobReference, wait_options: WaitOptions, prepare: PrepareChange, clean_up: CleanUp | None = None
) -> int:
    """Change the job, wait until the change is done, and call `clean_up`. Return the exit code."""
    console = Console(file=cast(IO[str], StandardError(sys.stderr)), highlight=False)

    async def request(target: ClusterJob) -> int:
        started_at = time.monotonic()
        resource = await target.client.get(JOBS, target.namespace, target.name)
        change = await prepare(target, resource, lambda note: console.print(note, soft_wrap=True, markup=False))
        await _merge_change(target, resource, change)
        if not wait_options.waits:
            console.print(f"{target} {change.requested_text}", soft_wrap=True)
            return 0
        try:
            async with asyncio.timeout(wait_options.timeout):
                result = await _wait_until_done(target, change, LineDisplay(console))
        except TimeoutError:
            console.print(
                f"stopped waiting after {wait_options.timeout:g} s: {target} {change.requested_text} later",
                soft_wrap=True,
            )
            return TIMED_OUT
        if result == 0:
            if clean_up is not None:
                await clean_up(target, resource)
            console.print(f"{target} {change.done_text} ({time.monotonic() - started_at:.1f} s)", soft_wrap=True)
        return result

    return run_on_cluster(reference, request)


async def _merge_change(target: ClusterJob, resource: Object, change: RequestedChange) -> None:
    """Merge the change's fields into the resource. Raises `ApiError`."""
    # With the uid, the merge fails if another job of the same name has replaced this one.
    metadata: dict[str, JSON] = {"uid": read_string(read_mapping(resource.get("metadata")).get("uid"))}
    fields = {**change.fields, "metadata": {**read_mapping(change.fields.get("metadata")), **metadata}}
    await target.client.merge(JOBS, target.namespace, target.name, fields)


async def _wait_until_done(target: ClusterJob, change: RequestedChange, display: LineDisplay) -> int:
    """Show the job's messages until the change is done. Return 1 if the job ends without it."""
    try:
        async with aclosing(watch_job(target)) as jobs:
            async for observed_job in jobs:
                if change.is_done(observed_job):
                    return 0
                display.show(build_view(observed_job, time.time()))
                refusal = change.find_refusal(observed_job)
                if refusal is not None:
                    display.show_note(refusal)
                    return FAILED
                if observed_job.is_over or (observed_job.status.phase == REFUSED and observed_job.is_refused):
                    display.close(build_view(observed_job, time.time()))
                    return 0 if is_complete(observed_job.status) else FAILED
    except JobDeleted:
        display.show_note(f"{target} was deleted")
    return FAILED
