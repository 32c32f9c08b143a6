"""Users who may edit jobs may remove their finalizers: no training job continues to run because of that."""

from __future__ import annotations

import pytest

from fakes.sagemaker_service.faults import Fault
from fakes.sagemaker_service.script import make_stages_before_training
from fakes.sagemaker_site.life import Life, run_scenario_on
from fakes.sagemaker_site.site import Site, Wire, make_spec
from muster.api.backends import TRAINING_JOB_FINALIZER
from support.training_job_requests import make_training_job_request

NAME = "vit-4a49acf8a6-1"


def lived(wire: Wire, life: Life) -> None:
    """Run a scenario with one operator, and training jobs that train until they are stopped."""

    def training() -> Site:
        site = Site(wire)
        site.service.get_jobs().script = lambda _: make_stages_before_training()
        return site

    run_scenario_on(training, life)


def stops(site: Site) -> list[object]:
    """Return the training jobs with a stop request."""
    return [call.request["TrainingJobName"] for call in site.service.list_calls("StopTrainingJob")]


def test_a_finalizer_that_was_taken_off_a_running_job_comes_back(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.stored.create("vit", make_spec())
        await site.wait_until(lambda: site.get_phase() == "Running")
        site.stored.forge("vit", ["example.com/theirs"])
        await site.wait_until(lambda: TRAINING_JOB_FINALIZER in finalizers(site))
        assert finalizers(site) == ["example.com/theirs", TRAINING_JOB_FINALIZER]
        assert stops(site) == []

    lived(wire, life)


def test_a_finalizer_that_came_back_tells_nothing_of_what_runs(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.stored.create("vit", make_spec())
        await site.wait_until(lambda: site.get_phase() == "Running")
        site.stored.forge("vit", [])
        await site.wait_until(lambda: TRAINING_JOB_FINALIZER in finalizers(site))
        site.stored.remove_status("vit")
        site.stored.delete("vit")
        await site.wait_until(lambda: site.stored.read("vit") is None)
        assert set(stops(site)) == {NAME}

    lived(wire, life)


def finalizers(site: Site) -> list[str]:
    resource = site.stored.read("vit")
    assert resource is not None
    return list(resource["metadata"]["finalizers"])


@pytest.mark.parametrize("deleted_first", [True, False])
def test_a_training_job_whose_resource_was_torn_away_is_stopped(wire: Wire, *, deleted_first: bool) -> None:
    async def life(site: Site) -> None:
        site.stored.create("vit", make_spec())
        await site.wait_until(lambda: site.get_phase() == "Running")
        site.service.faults.add("DescribeTrainingJob", Fault.FAIL)
        if deleted_first:
            site.stored.delete("vit")
            site.stored.forge("vit", [])
        else:
            site.stored.forge("vit", [])
            site.stored.delete("vit")
        assert site.stored.read("vit") is None
        await site.wait_until_settled(300.0)
        assert set(stops(site)) == {NAME}
        assert site.service.get_jobs().by_name[NAME].state(site.service.now())[1].status == "Stopped"

    lived(wire, life)


def test_what_muster_let_go_itself_is_left_alone(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.stored.create("vit", make_spec())
        await site.wait_until(lambda: site.get_phase() == "Running")
        site.stored.delete("vit")
        await site.wait_until(lambda: site.stored.read("vit") is None)
        asked = len(site.service.list_calls("DescribeTrainingJob"))
        await site.wait_until_settled(300.0)
        assert stops(site) == [NAME]
        assert len(site.service.list_calls("DescribeTrainingJob")) == asked

    lived(wire, life)


def test_a_foreign_training_job_of_that_name_continues(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.service.policy = None
        site.service.get_jobs().create(make_training_job_request(NAME), site.service.now())
        site.stored.create("vit", make_spec())
        await site.wait_until(lambda: site.find_condition("Stalled")[1] == "TrainingJobExists")
        site.stored.forge("vit", [])
        site.stored.delete("vit")
        await site.wait_until_settled(300.0)
        assert stops(site) == []

    lived(wire, life)
