"""A deleted resource remains until its training job has ended, or AWS has refused requests for ten minutes in a row."""

from __future__ import annotations

import itertools
import logging

import pytest

from fakes.sagemaker_service.faults import Fault
from fakes.sagemaker_service.script import make_stages_before_training
from fakes.sagemaker_site.life import run_scenario
from fakes.sagemaker_site.site import HERE, Site, Wire, make_spec
from muster.objects.aws.training_job import FINAL_STATUSES

MINUTE = 60.0


async def _running(site: Site) -> None:
    site.service.get_jobs().script = lambda _: make_stages_before_training()
    site.stored.create("vit", make_spec())
    await site.wait_until(lambda: site.get_phase() == "Running")


def _left_running(site: Site) -> list[str]:
    return [one["message"] for one in site.stored.events if one["reason"] == "TrainingJobLeftRunning"]


def _runs(site: Site) -> bool:
    states = (job.state(site.service.now())[1].status for job in site.service.get_jobs().by_name.values())
    return any(state not in FINAL_STATUSES for state in states)


async def _is_deleted(site: Site) -> None:
    await site.wait_until(lambda: site.stored.read("vit") is None)
    await site.wait_until_settled(5.0)


async def _goes_with_its_training_job(site: Site) -> None:
    await _is_deleted(site)
    assert not _runs(site)
    assert not _left_running(site)


@pytest.mark.parametrize(
    ("away", "refusal"),
    [
        (Fault.DROP, Fault.EXPIRED),
        (Fault.FAIL, Fault.UNKNOWN_CALLER),
        (Fault.THROTTLE, Fault.DENY),
        (Fault.SILENCE, Fault.DENY),
    ],
)
def test_one_refusal_after_aws_was_away_lets_nothing_go(wire: Wire, away: Fault, refusal: Fault) -> None:
    async def life(site: Site) -> None:
        await _running(site)
        site.service.faults.chance = lambda _: away
        await site.wait_until_settled(10 * MINUTE)
        site.stored.delete("vit")
        await site.wait_until_settled(10 * MINUTE)
        answers = itertools.chain((refusal,), itertools.repeat(None))
        site.service.faults.chance = lambda _: next(answers)
        await _goes_with_its_training_job(site)
        assert site.service.list_calls("StopTrainingJob")

    run_scenario(wire, life)


def test_time_without_an_answer_is_not_counted(wire: Wire) -> None:
    async def life(site: Site) -> None:
        await _running(site)
        # five minutes of refusals, half an hour without an answer, four minutes of refusals
        began = site.get_now()

        def fault(_: str) -> Fault | None:
            minutes = (site.get_now() - began) / MINUTE
            if minutes < 5 or 35 <= minutes < 39:
                return Fault.EXPIRED
            return Fault.DROP if minutes < 35 else None

        site.service.faults.chance = fault
        site.stored.delete("vit")
        await _goes_with_its_training_job(site)

    run_scenario(wire, life)


def test_nine_minutes_of_refusals_let_nothing_go(wire: Wire) -> None:
    async def life(site: Site) -> None:
        await _running(site)
        deleted_at = site.get_now()

        def fault(operation: str) -> Fault | None:
            # the operator may describe but not stop, for a while
            if operation != "StopTrainingJob":
                return None
            return Fault.DENY if site.get_now() - deleted_at < 9 * MINUTE else None

        site.service.faults.chance = fault
        site.stored.delete("vit")
        await _goes_with_its_training_job(site)

    run_scenario(wire, life)


def test_another_operator_counts_from_its_own_beginning(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)

    async def life(site: Site) -> None:
        await _running(site)
        name = site.record().training_job_name
        site.service.faults.chance = lambda _: Fault.EXPIRED
        site.stored.delete("vit")
        await site.wait_until_settled(9 * MINUTE)
        site.kill_operator()
        await site.wait_until(lambda: site.deaths == 1)
        died_at = site.get_now()
        await _is_deleted(site)
        assert site.get_now() - died_at > 10 * MINUTE
        (message,) = _left_running(site)
        command = f"`aws sagemaker stop-training-job --training-job-name {name} --region {HERE.region}`"
        assert command in message
        assert any(command in record.getMessage() for record in caplog.records)

    run_scenario(wire, life)


@pytest.mark.parametrize("is_wiped", [pytest.param(True, id="status wiped"), pytest.param(False, id="status kept")])
def test_giving_up_always_says_what_a_person_can_do(wire: Wire, is_wiped: bool) -> None:  # noqa: FBT001
    async def life(site: Site) -> None:
        await _running(site)
        site.kill_operator()
        if is_wiped:
            site.stored.remove_status("vit")
        site.service.faults.chance = lambda _: Fault.UNKNOWN_CALLER
        site.stored.delete("vit")
        await _is_deleted(site)
        (message,) = _left_running(site)
        wanted = "list-training-jobs --status-equals InProgress" if is_wiped else "stop-training-job"
        assert f"aws sagemaker {wanted}" in message

    run_scenario(wire, life)
