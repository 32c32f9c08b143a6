"""Users who may edit jobs may remove their finalizers: no training job continues to run because of that."""

from __future__ import annotations

import pytest

from fakes.sagemaker_service.faults import Fault
from fakes.sagemaker_service.script import until_training
from fakes.sagemaker_site.life import Life, lived_on
from fakes.sagemaker_site.site import Site, Wire, spec
from muster.api.backends import TRAINING_JOB_FINALIZER
from support.training_job_requests import training_job_request

NAME = "vit-4a49acf8a6-1"


def lived(wire: Wire, life: Life) -> None:
    """Run a scenario with one operator, and training jobs that train until they are stopped."""

    def training() -> Site:
        site = Site(wire)
        site.service.jobs().script = lambda _: until_training()
        return site

    lived_on(training, life)


def stops(site: Site) -> list[object]:
    """Return the training jobs with a stop request."""
    return [call.request["TrainingJobName"] for call in site.service.called("StopTrainingJob")]


def test_a_finalizer_that_was_taken_off_a_running_job_comes_back(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.stored.create("vit", spec())
        await site.until(lambda: site.phase() == "Running")
        site.stored.forge("vit", ["example.com/theirs"])
        await site.until(lambda: TRAINING_JOB_FINALIZER in finalizers(site))
        assert finalizers(site) == ["example.com/theirs", TRAINING_JOB_FINALIZER]
        assert stops(site) == []

    lived(wire, life)


def test_a_finalizer_that_came_back_tells_nothing_of_what_runs(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.stored.create("vit", spec())
        await site.until(lambda: site.phase() == "Running")
        site.stored.forge("vit", [])
        await site.until(lambda: TRAINING_JOB_FINALIZER in finalizers(site))
        site.stored.wipe("vit")
        site.stored.delete("vit")
        await site.until(lambda: site.stored.read("vit") is None)
        assert set(stops(site)) == {NAME}

    lived(wire, life)


def finalizers(site: Site) -> list[str]:
    resource = site.stored.read("vit")
    assert resource is not None
    return list(resource["metadata"]["finalizers"])


@pytest.mark.parametrize("deleted_first", [True, False])
def test_a_training_job_whose_resource_was_torn_away_is_stopped(wire: Wire, *, deleted_first: bool) -> None:
    async def life(site: Site) -> None:
        site.stored.create("vit", spec())
        await site.until(lambda: site.phase() == "Running")
        site.service.faults.add("DescribeTrainingJob", Fault.FAIL)
        if deleted_first:
            site.stored.delete("vit")
            site.stored.forge("vit", [])
        else:
            site.stored.forge("vit", [])
            site.stored.delete("vit")
        assert site.stored.read("vit") is None
        await site.until_settled(300.0)
        assert set(stops(site)) == {NAME}
        assert site.service.jobs().by_name[NAME].state(site.service.now())[1].status == "Stopped"

    lived(wire, life)


def test_what_muster_let_go_itself_is_left_alone(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.stored.create("vit", spec())
        await site.until(lambda: site.phase() == "Running")
        site.stored.delete("vit")
        await site.until(lambda: site.stored.read("vit") is None)
        asked = len(site.service.called("DescribeTrainingJob"))
        await site.until_settled(300.0)
        assert stops(site) == [NAME]
        assert len(site.service.called("DescribeTrainingJob")) == asked

    lived(wire, life)


def test_a_foreign_training_job_of_that_name_continues(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.service.policy = None
        site.service.jobs().create(training_job_request(NAME), site.service.now())
        site.stored.create("vit", spec())
        await site.until(lambda: site.find_condition("Stalled")[1] == "TrainingJobExists")
        site.stored.forge("vit", [])
        site.stored.delete("vit")
        await site.until_settled(300.0)
        assert stops(site) == []

    lived(wire, life)
