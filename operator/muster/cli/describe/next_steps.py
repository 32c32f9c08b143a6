"""What the user of a job can do next, with the page of the documentation. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from muster.api.names import SHORT_NAME
from muster.api.status.status import REFUSED, RESTARTING, Status
from muster.cli.board.observed_job import ObservedJob

FAILURES_PAGE = "docs/reasons.md#why-a-job-failed"
AWS_PAGE = "docs/reasons.md#aws-and-sagemaker"
DELAYS_PAGE = "docs/reasons.md#what-keeps-a-job-from-starting"
REFUSALS_PAGE = "docs/reasons.md#refused-specs"
NO_PHASE_PAGE = "docs/troubleshooting.md#the-job-has-no-phase"

PAGES_BY_REASON: Mapping[str, str] = MappingProxyType(
    {
        "Hung": "docs/hangs.md",
        "Straggler": "docs/stragglers.md",
        "NetworkMismatch": "docs/network.md#failures",
        "NetworkUnsupported": "docs/mpi.md#when-an-mpi-job-fails",
        "WorldSizeMismatch": "docs/mpi.md#the-world-is-checked",
        "NodeLost": "docs/node-failure.md",
        "Fenced": "docs/node-failure.md#fencing",
        "AgentNeedsPython": "docs/images-without-python.md",
        "SourceMissing": "docs/rerun.md#when-it-has-no-effect",
    }
)
"""The reasons that have a page of their own."""

_STORAGE_REASONS = ("S3", "Git")
_STORAGE_PAGE = "docs/s3-permissions.md#reasons"


def list_next_steps(job: ObservedJob) -> tuple[str, ...]:
    """Return a sentence for each step, the most useful one first."""
    status = job.status
    if not status.conditions:
        return (f"`muster doctor` checks whether muster's operator runs: {NO_PHASE_PAGE}",)
    if status.final_condition is not None:
        return _list_steps_after_end(job.name, status)
    if status.phase == REFUSED:
        return (f"correct the spec and apply the job again: {REFUSALS_PAGE}",)
    if status.is_suspended:
        return (f"`muster resume {job.name}` starts the ranks",)
    return _list_steps_while_active(job.name, status)


def _list_steps_after_end(name: str, status: Status) -> tuple[str, ...]:
    final = status.final_condition
    delete = f"`kubectl delete {SHORT_NAME} {name}` deletes the job; apply it again to run it again"
    if final is None or final.type == "Complete":
        return (delete,)
    return (f"the reason {final.reason} is described in {find_failure_page(final.reason, status)}", delete)


def _list_steps_while_active(name: str, status: Status) -> tuple[str, ...]:
    steps = []
    stalled, scheduled = status.find_condition("Stalled"), status.find_condition("Scheduled")
    if stalled is not None and stalled.status == "True":
        page = find_failure_page(stalled.reason, status) if status.was_ever_started else DELAYS_PAGE
        steps.append(f"the reason {stalled.reason} is described in {page}")
    elif scheduled is not None and scheduled.status == "False":
        steps.append(f"the reason {scheduled.reason} is described in {DELAYS_PAGE}")
    if status.hang is not None:
        steps.append(f"`muster stacks {name}` shows where the ranks hang")
    if status.stragglers is not None:
        steps.append(f"some ranks are slow: {PAGES_BY_REASON['Straggler']}")
    if status.phase == RESTARTING and status.last_restart is not None:
        reason = status.last_restart.reason
        steps.append(f"the reason {reason} is described in {find_failure_page(reason, status)}")
    return (*steps, f"`muster ranks {name}` shows every rank, `muster logs -f {name}` their output")


def find_failure_page(reason: str, status: Status) -> str:
    """Return the page that describes the reason of a failure."""
    if reason in PAGES_BY_REASON:
        return PAGES_BY_REASON[reason]
    if status.backend is not None and status.backend.sagemaker is not None:
        return AWS_PAGE
    return _STORAGE_PAGE if reason.startswith(_STORAGE_REASONS) else FAILURES_PAGE
