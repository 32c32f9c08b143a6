"""Statuses that others wrote, restored or removed: no training job continues to run, and no foreign one is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fakes.sagemaker_service.jobs import ENDED
from fakes.sagemaker_service.script import make_stages_before_training
from fakes.sagemaker_site.site import HERE, THERE, Fate, Site, Wire, make_spec
from muster.api.backends import TRAINING_JOB_FINALIZER
from support import virtual_time
from support.training_job_requests import make_training_job_request

NAME = "vit-4a49acf8a6-1"
COMPLETE = {
    "type": "Complete",
    "status": "True",
    "reason": "Succeeded",
    "message": "so they say",
    "lastTransitionTime": "2026-11-21T04:00:00Z",
}


def lived(wire: Wire, life: Callable[[Site], Awaitable[None]], fate: Callable[[str], Fate] = lambda _: "pass") -> None:
    async def run() -> None:
        site = Site(wire, fate)
        site.service.get_jobs().script = lambda _: make_stages_before_training()
        site.begin()
        try:
            await life(site)
        finally:
            await site.close()

    virtual_time.run(run(), lambda: 0.05)


async def trains(site: Site, **changes: Any) -> None:
    site.stored.create("vit", make_spec(**changes))
    await site.wait_until(lambda: site.get_phase() == "Running")


async def second_attempt(site: Site) -> dict[str, Any]:
    """Suspend and resume the job; return the status of its first training job."""
    await trains(site)
    resource = site.stored.read("vit")
    assert resource is not None
    before: dict[str, Any] = resource["status"]
    site.stored.change("vit", suspend=True)
    await site.wait_until(lambda: site.get_phase() == "Suspended")
    site.stored.change("vit", suspend=False)
    await site.wait_until(lambda: site.get_phase() == "Running" and site.record().attempt == 2)
    return before


def forge(site: Site, **record: Any) -> None:
    site.stored.forge("vit", [TRAINING_JOB_FINALIZER], backend={"sagemaker": record})


def running(site: Site) -> list[str]:
    now = site.service.now()
    return [name for name, job in site.service.get_jobs().by_name.items() if job.state(now)[1].status not in ENDED]


def is_let_go(site: Site) -> bool:
    resource = site.stored.read("vit")
    return resource is None or not resource["metadata"].get("finalizers")


FORGERIES = [
    pytest.param({"region": THERE.region}, id="region"),
    pytest.param({"region": THERE.region, "arn": None}, id="region of an unobserved one"),
    pytest.param({"trainingJobName": "somebody-elses"}, id="name"),
    pytest.param({"attempt": 7}, id="attempt"),
]


@pytest.mark.parametrize("dies", [True, False])
@pytest.mark.parametrize("record", FORGERIES)
def test_muster_finds_and_stops_a_training_job_despite_a_forged_status(
    wire: Wire, record: dict[str, Any], *, dies: bool
) -> None:
    async def life(site: Site) -> None:
        await trains(site)
        if dies:
            site.kill_operator()
        forge(site, **record)
        site.stored.delete("vit")
        await site.wait_until(lambda: site.stored.read("vit") is None)
        assert running(site) == []
        assert {call.request["TrainingJobName"] for call in site.service.list_calls("StopTrainingJob")} == {NAME}

    lived(wire, life)


@pytest.mark.parametrize("record", FORGERIES[:3])
def test_a_wrong_status_is_corrected(wire: Wire, record: dict[str, Any]) -> None:
    async def life(site: Site) -> None:
        await trains(site)
        forge(site, **record)
        site.kill_operator()
        await site.wait_until(lambda: site.record().region == HERE.region and site.record().arn is not None)
        assert site.get_phase() == "Running"
        site.stored.change("vit", suspend=True)
        await site.wait_until(lambda: site.get_phase() == "Suspended" and is_let_go(site))
        assert running(site) == []
        assert list(site.service.get_jobs().by_name) == [NAME]

    lived(wire, life)


@pytest.mark.parametrize("deletes", [True, False])
def test_an_old_status_that_was_restored_leaves_no_training_job_running(wire: Wire, *, deletes: bool) -> None:
    async def life(site: Site) -> None:
        before = await second_attempt(site)
        site.stored.remove_status("vit")
        site.stored.forge("vit", [TRAINING_JOB_FINALIZER], **before)
        site.kill_operator()
        if deletes:
            site.stored.delete("vit")
        await site.wait_until(lambda: is_let_go(site))
        assert running(site) == []

    lived(wire, life)


@pytest.mark.parametrize("dies", [True, False])
def test_a_forged_end_does_not_leave_a_training_job_running(wire: Wire, *, dies: bool) -> None:
    async def life(site: Site) -> None:
        await trains(site)
        if dies:
            site.kill_operator()
        site.stored.forge("vit", [TRAINING_JOB_FINALIZER], conditions=[COMPLETE])
        await site.wait_until(lambda: is_let_go(site))
        assert running(site) == []

    lived(wire, life)


@pytest.mark.parametrize("dies", [True, False])
@pytest.mark.parametrize("attempts", [1, 2])
def test_a_training_job_goes_on_when_its_status_is_wiped(wire: Wire, attempts: int, *, dies: bool) -> None:
    async def life(site: Site) -> None:
        if attempts == 1:
            await trains(site)
        else:
            await second_attempt(site)
        if dies:
            site.kill_operator()
        site.stored.remove_status("vit")
        await site.wait_until(lambda: site.get_phase() == "Running")
        assert site.record().attempt == attempts
        assert len(site.service.get_jobs().by_name) == attempts
        assert len(running(site)) == 1

    lived(wire, life)


@pytest.mark.parametrize("dies", [True, False])
def test_a_suspended_job_whose_status_is_wiped_leaves_none_running(wire: Wire, *, dies: bool) -> None:
    async def life(site: Site) -> None:
        await trains(site)
        if dies:
            site.kill_operator()
        site.stored.remove_status("vit")
        site.stored.change("vit", suspend=True)
        await site.wait_until(lambda: site.get_phase() == "Suspended" and is_let_go(site))
        assert running(site) == []

    lived(wire, life)


@pytest.mark.parametrize("leaves", ["suspend", "delete", "stay"])
def test_a_request_under_way_while_the_status_is_wiped_leaves_none_running(wire: Wire, leaves: str) -> None:
    killed = asyncio.Event()

    def fate(what: str) -> Fate:
        if what != "CreateTrainingJob" or killed.is_set():
            return "pass"
        killed.set()
        return "before"

    async def life(site: Site) -> None:
        site.stored.create("vit", make_spec())
        await killed.wait()
        site.stored.remove_status("vit")
        if leaves == "suspend":
            site.stored.change("vit", suspend=True)
        if leaves == "delete":
            site.stored.delete("vit")
        # Its request to SageMaker takes longer than the operator lived.
        await site.wait_until_settled(20.0)
        own = [{"Key": "muster.dev/job-uid", "Value": "uid-1"}, {"Key": "muster.dev/attempt", "Value": "1"}]
        if not running(site):
            site.service.get_jobs().create(make_training_job_request(NAME, Tags=own), site.service.now())
        await site.wait_until(lambda: is_let_go(site) or (leaves == "stay" and site.get_phase() == "Running"))
        assert running(site) == ([NAME] if leaves == "stay" else [])
        assert list(site.service.get_jobs().by_name) == [NAME]

    lived(wire, life, fate)


def test_an_arn_in_the_status_makes_no_training_job_the_jobs_own(wire: Wire) -> None:
    async def life(site: Site) -> None:
        await trains(site)
        site.kill_operator()
        theirs = site.service.get_jobs().by_name[NAME]
        theirs.tags.clear()
        site.stored.change("vit", suspend=True)
        await site.wait_until_settled(600.0)
        site.stored.delete("vit")
        await site.wait_until(lambda: site.stored.read("vit") is None)
        assert running(site) == [NAME]
        assert not site.service.list_calls("StopTrainingJob")

    lived(wire, life)
