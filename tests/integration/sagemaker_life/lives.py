"""Scenarios of SageMaker jobs: the spec, SageMaker's stages, the user's actions, and the expected end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from fakes.sagemaker_service.jobs import ENDED
from fakes.sagemaker_service.script import (
    Script,
    make_completing_script,
    make_failing_script,
    make_no_capacity_script,
    make_stages_before_training,
)
from fakes.sagemaker_site.site import Site, make_spec

JOB = "vit"
CRASH = 'AlgorithmError: ExecuteUserScriptError:\nExitCode 1\nErrorMessage "raise ValueError: no such layer"'


@dataclass(frozen=True)
class Life:
    """`scripts`: the stages of the first training job, the second, ...; the last one also for all later ones."""

    name: str
    acts: Callable[[Site], Awaitable[None]]
    phase: str
    scripts: tuple[Script, ...] = (make_completing_script(),)
    changes: dict[str, Any] = field(default_factory=dict)

    async def begin(self, site: Site) -> None:
        """Apply the job, once."""
        made: list[str] = []

        def script(request: Any) -> Script:
            made.append(str(request["TrainingJobName"]))
            return self.scripts[min(len(made), len(self.scripts)) - 1]

        site.service.get_jobs().script = script
        site.stored.create(JOB, make_spec(**self.changes))

    def is_over(self, site: Site) -> bool:
        """Whether the job has reached its final state, with nothing left to do."""
        resource = site.stored.read(JOB)
        if resource is None:
            return self.phase == ""
        has_finalizer = bool(resource["metadata"].get("finalizers"))
        return site.get_phase(JOB) == self.phase and not has_finalizer


@dataclass(frozen=True)
class Ending:
    """The final state, without the details that differ between runs."""

    phase: str
    attempt: int
    conditions: frozenset[tuple[str, str, str]]
    jobs: tuple[tuple[str, str], ...]
    earlier: tuple[tuple[int, str, str], ...]
    events: frozenset[tuple[str, str]]


def ending(site: Site) -> Ending:
    """Return the current state."""
    now = site.service.now()
    jobs = tuple((name, job.state(now)[1].status) for name, job in site.service.get_jobs().by_name.items())
    events = frozenset((one["type"], one["reason"]) for one in site.stored.events)
    if site.stored.read(JOB) is None:
        return Ending("", 0, frozenset(), jobs, (), events)
    status = site.get_status(JOB)
    record = None if status.backend is None else status.backend.sagemaker
    return Ending(
        phase=status.phase,
        attempt=status.attempt,
        conditions=frozenset((one.type, one.status, one.reason) for one in status.conditions),
        jobs=jobs,
        earlier=() if record is None else tuple((one.attempt, one.status, one.reason) for one in record.earlier),
        events=events,
    )


def wrongs(site: Site) -> list[str]:
    """Return the violations of rules that hold even if operators have died."""
    made = [
        call
        for call in site.service.list_calls("CreateTrainingJob")
        if not call.outcome or call.outcome.endswith("AFTER")
    ]
    names = [str(call.request["TrainingJobName"]) for call in made]
    attempts = [job.tags["muster.dev/attempt"] for job in site.service.get_jobs().by_name.values()]
    result = [f"{name} was made twice" for name in set(names) if names.count(name) > 1]
    result += [f"attempt {one} has two training jobs" for one in set(attempts) if attempts.count(one) > 1]
    result += _together(site)
    if site.stored.read(JOB) is None:
        now = site.service.now()
        left = [name for name, job in site.service.get_jobs().by_name.items() if job.state(now)[1].status not in ENDED]
        result += [f"{name} was left running" for name in left]
    for statuses in site.stored.statuses.values():
        starts = [one.get("attempt", 0) for one in statuses]
        result += ["the attempt fell"] if starts != sorted(starts) else []
        ends = [_is_over(one) for one in statuses]
        result += ["an end was taken back"] if ends != sorted(ends) else []
    return result


def _together(site: Site) -> list[str]:
    """Training jobs of the job that ran at the same time."""
    spans = []
    for name, job in site.service.get_jobs().by_name.items():
        end = next((at for at, stage in job.course.stages if stage.status in ENDED), None)
        spans.append((job.created, end, name))
    spans.sort()
    return [
        f"{after[2]} began before {before[2]} had ended"
        for before, after in pairwise(spans)
        if before[1] is None or after[0] < before[1]
    ]


def _is_over(status: dict[str, Any]) -> bool:
    return any(
        one["type"] in ("Complete", "Failed") and one["status"] == "True" for one in status.get("conditions", ())
    )


async def looks_on(_: Site) -> None:
    """The user does nothing."""


async def deletes_when_it_trains(site: Site) -> None:
    """While its ranks run."""
    await site.wait_until(lambda: site.get_phase(JOB) == "Running")
    site.stored.delete(JOB)


async def deletes_at_once(site: Site) -> None:
    """Before or while its training job is created."""
    await site.wait_until(lambda: site.stored.read(JOB) is None or bool(_finalizers(site)))
    if site.stored.read(JOB) is not None:
        site.stored.delete(JOB)


async def suspends_and_resumes(site: Site) -> None:
    """While its ranks run, and then after they have stopped."""
    await site.wait_until(lambda: site.get_phase(JOB) == "Running")
    site.stored.change(JOB, suspend=True)
    await site.wait_until(lambda: site.get_phase(JOB) == "Suspended")
    site.stored.change(JOB, suspend=False)


async def suspends_and_thinks_better(site: Site) -> None:
    """While its ranks run, and then while they are being stopped."""
    await site.wait_until(lambda: site.get_phase(JOB) == "Running")
    site.stored.change(JOB, suspend=True)
    await site.wait_until(lambda: site.get_phase(JOB) == "Stopping")
    site.stored.change(JOB, suspend=False)


async def suspends_and_deletes(site: Site) -> None:
    """While it is being stopped."""
    await site.wait_until(lambda: site.get_phase(JOB) == "Running")
    site.stored.change(JOB, suspend=True)
    await site.wait_until(lambda: site.get_phase(JOB) == "Stopping")
    site.stored.delete(JOB)


def _finalizers(site: Site) -> list[str]:
    resource = site.stored.read(JOB)
    return [] if resource is None else list(resource["metadata"].get("finalizers", []))


TRAINS = make_stages_before_training()
COMPLETES = Life("completes", looks_on, "Succeeded")
FAILS = Life("fails", looks_on, "Failed", (make_failing_script(CRASH),))
RESTARTS = Life(
    "restarts",
    looks_on,
    "Succeeded",
    (make_failing_script(CRASH), make_completing_script()),
    {"failurePolicy": {"maxRestarts": 2}},
)
WAITS = Life(
    "waits for capacity",
    looks_on,
    "Succeeded",
    (make_no_capacity_script(), make_no_capacity_script(), make_completing_script()),
)
RESUMES = Life("resumes", suspends_and_resumes, "Succeeded", (TRAINS, make_completing_script()))
THINKS_BETTER = Life("resumes early", suspends_and_thinks_better, "Succeeded", (TRAINS, make_completing_script()))
DEADLINE = Life("is too long", looks_on, "Failed", (TRAINS,), {"activeDeadlineSeconds": 120})
DELETED = Life("is deleted", deletes_when_it_trains, "", (TRAINS,))
DELETED_EARLY = Life("is deleted early", deletes_at_once, "", (TRAINS,))
DELETED_SUSPENDED = Life("is deleted while suspended", suspends_and_deletes, "", (TRAINS,))
LIVES = (COMPLETES, FAILS, RESTARTS, WAITS, RESUMES, THINKS_BETTER, DEADLINE, DELETED, DELETED_EARLY, DELETED_SUSPENDED)
