"""One controller per job: the events that wake it, the errors that it survives, and its end."""

import asyncio
import logging
from pathlib import Path

import pytest

from fakes.api_server import make_failure
from muster.clients.kubernetes.client import Change
from muster.collector.pod_directory import PodIdentity
from muster.collector.store import UnknownJob
from muster.core.facts import ProcessFacts, ProcessState
from muster.objects.kubernetes.errors import ApiError
from muster_worker.contract.schema import AgentPhase, RankReport, RankState, Report
from unit.controller.cluster_resources import CREATED, resource
from unit.controller.worlds import Site, site

FINAL = {"type": "Complete", "status": "True", "reason": "AllRanksSucceeded", "lastTransitionTime": CREATED}


async def idle(here: Site) -> int:
    """Wait until the job is reconciled no more; return the number of reconciliations."""
    while True:
        turns = here.world.turns.get("vit", 0)
        await asyncio.sleep(0.08)
        # On a busy machine, this time may pass before the event loop has run all that is ready.
        for _ in range(500):
            await asyncio.sleep(0)
        if turns == here.world.turns.get("vit", 0):
            return turns


def report(step: int, state: str = RankState.RUNNING, sequence: int = 1) -> Report:
    rank = RankReport(0, 0, state, started_age=1.0, step=step)
    return Report("u-1", 0, 0, 1, sequence, AgentPhase.RUNNING, ranks=(rank,))


async def test_a_job_is_turned_when_it_is_heard_of_and_its_status_stored(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        here.hear()
        await here.world.turn(1)
        await idle(here)
        assert here.server.status["conditions"]


async def test_a_job_is_met_once(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        here.hear()
        here.hear()
        assert [resource.name for resource in here.met] == ["vit"]


async def test_many_news_at_once_are_one_turn(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        here.hear()
        before = await idle(here)
        for _ in range(100):
            here.jobs.wake("u-1")
        assert await idle(here) - before <= 2


async def test_the_answer_to_its_own_write_is_no_news(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        here.hear()
        before = await idle(here)
        here.hear()
        assert await idle(here) == before


async def test_an_agents_report_wakes_the_job(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        here.hear()
        before = await idle(here)
        here.store.record_report(PodIdentity("u-1", 0, 0), report(1), 1.8e9)
        await here.world.turn(before + 1)


async def test_progress_reconciles_the_job_only_when_it_may_be_written(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        here.hear()
        await idle(here)
        here.store.record_report(PodIdentity("u-1", 0, 0), report(1), 1.8e9)
        before = await idle(here)
        for step in range(2, 20):
            here.store.record_report(PodIdentity("u-1", 0, 0), report(step, sequence=step), 1.8e9)
            await asyncio.sleep(0.05)
        assert here.world.turns["vit"] <= before + 1
        await here.world.turn(before + 1)


async def test_a_big_job_rests_long_but_not_from_what_changes_a_ranks_state(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        here.hear()
        await idle(here)
        here.store.record_report(PodIdentity("u-1", 0, 0), report(1), 1.8e9)
        await idle(here)
        # by this clock the next reconciliation takes so much that a minute's wait follows
        here.cpu.seconds = 5.0
        before = here.world.turns["vit"]
        here.store.record_report(PodIdentity("u-1", 0, 0), report(2, sequence=2), 1.8e9)
        await here.world.turn(before + 1)
        here.store.record_report(PodIdentity("u-1", 0, 0), report(3, sequence=3), 1.8e9)
        await asyncio.sleep(0.7)
        assert here.world.turns["vit"] == before + 1
        began = asyncio.get_running_loop().time()
        ended = Report(
            "u-1", 0, 0, 1, 4, AgentPhase.RUNNING,
            ranks=(RankReport(0, 0, RankState.EXITED, started_age=1.0, ended_age=0.1, exit_code=3),),
        )  # fmt: skip
        here.store.record_report(PodIdentity("u-1", 0, 0), ended, 1.8e9)
        await here.world.turn(before + 2)
        assert asyncio.get_running_loop().time() - began < 1.0


async def test_a_mistake_in_one_jobs_turn_is_logged_once_with_its_place_and_leaves_the_others_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with site(tmp_path) as here:
        here.hear()
        await idle(here)
        here.world.problem = [ZeroDivisionError("the mistake"), ZeroDivisionError("the mistake")]
        before = here.world.turns["vit"]
        here.jobs.wake("u-1")
        await here.world.turn(before + 1)
        here.hear(name="bert", uid="u-2")
        await here.world.turn(1, "bert")
        await here.world.turn(before + 3)
    value = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [record.getMessage().count("the mistake") for record in value] == [1]
    assert "team/vit" in value[0].getMessage()
    assert "worlds.py" in value[0].getMessage()


async def test_an_api_server_that_asks_for_a_pause_gets_it(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        here.hear()
        before = await idle(here)
        here.world.problem = [ApiError(429, "TooManyRequests", "later", retry_after=0.7)]
        here.jobs.wake("u-1")
        await here.world.turn(before + 1)
        began = asyncio.get_running_loop().time()
        for _ in range(10):
            here.jobs.wake("u-1")
            await asyncio.sleep(0.01)
        await here.world.turn(before + 2)
        assert asyncio.get_running_loop().time() - began >= 0.55


async def test_a_status_that_is_not_taken_keeps_the_actions_back(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        here.world.process = ProcessFacts(ProcessState.MISSING, replacement=-1)
        here.server.mishaps += [lambda _: make_failure(500, "InternalError", "etcd")] * 2
        here.hear()
        await here.world.turn(2)
        assert here.world.applied == []
        await here.world.turn(3)
        await idle(here)
        assert here.world.applied


async def test_an_invalid_resource_is_refused_in_its_status_and_served_once_it_is_right(tmp_path: Path) -> None:
    async with site(tmp_path, spec={"nodes": 0}) as here:
        here.hear()
        await idle(here)
        accepted = next(one for one in here.server.status["conditions"] if one["type"] == "Accepted")
        assert (accepted["status"], "spec.nodes" in accepted["message"]) == ("False", True)
        assert here.world.turns == {}
        assert here.server.resource is not None
        here.server.resource["spec"]["nodes"] = 1
        here.server.change(generation=2)
        here.hear()
        await here.world.turn(1)


async def test_a_job_whose_ranks_can_t_be_counted_is_refused_like_an_invalid_one(tmp_path: Path) -> None:
    limits = {"limits": {"nvidia.com/gpu": 2}}
    other = {"nodes": "1", "template": {"spec": {"containers": [{"name": "trainer", "resources": limits}]}}}
    async with site(tmp_path, spec={"nodes": 2, "procsPerNode": "Auto", "nodeOverrides": [other]}) as here:
        here.hear()
        await idle(here)
        accepted = next(one for one in here.server.status["conditions"] if one["type"] == "Accepted")
        assert accepted["status"] == "False"
        assert "spec.procsPerNode: found Auto, and node 0 has devices for 1 rank" in accepted["message"]
        assert here.world.turns == {}


async def test_a_finished_job_costs_nothing_until_something_happens(tmp_path: Path) -> None:
    async with site(tmp_path, status={"phase": "Succeeded", "conditions": [FINAL]}) as here:
        here.world.process = ProcessFacts(ProcessState.EXITED, exit_code=0)
        here.hear()
        before = await idle(here)
        with pytest.raises(UnknownJob):
            here.store.get_change_event("u-1")
        assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("job ")]
        here.jobs.wake("u-1")
        await here.world.turn(before + 1)


async def test_a_resource_that_is_being_deleted_gets_no_turn(tmp_path: Path) -> None:
    async with site(tmp_path, metadata={"deletionTimestamp": CREATED, "finalizers": ["foregroundDeletion"]}) as here:
        here.hear()
        await idle(here)
        assert (here.world.turns, here.server.patches) == ({}, [])


async def test_a_deleted_job_is_forgotten(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        here.hear()
        await idle(here)
        here.jobs.handle_change(Change("DELETED", resource(version=300)))
        assert (here.jobs.get_resources(), here.forgotten) == ((), ["u-1"])
        with pytest.raises(UnknownJob):
            here.store.get_change_event("u-1")
        turns = here.world.turns["vit"]
        here.jobs.wake("u-1")
        assert await idle(here) == turns


async def test_a_job_with_an_unreported_end_is_removed_when_its_status_can_not_be_written(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        here.hear()
        await idle(here)
        here.server.resource = None
        here.world.process = ProcessFacts(ProcessState.MISSING, replacement=0)
        here.jobs.wake("u-1")
        # The sentence about the missing pod is written with the next progress.
        async with asyncio.timeout(30):
            while here.jobs.get_resources():
                await idle(here)
        assert here.world.applied == []


async def test_a_resource_made_anew_takes_the_place_of_the_one_of_its_name(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        here.hear()
        await idle(here)
        here.server.resource = dict(resource(uid="u-2", version=400))
        here.hear()
        await idle(here)
        assert [one.uid for one in here.jobs.get_resources()] == ["u-2"]
        assert here.forgotten == ["u-1"]


async def test_a_new_list_of_resources_shows_which_are_missing(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        for _ in range(2):
            here.jobs.handle_change(Change("ADDED", resource()))
        assert here.relistings == 1


async def test_a_turn_under_way_is_let_finish_and_none_begins_after_it(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        here.hear()
        await here.world.turn(1)
        await here.jobs.stop(2.0)
        turns = dict(here.world.turns)
        assert here.server.status["conditions"]
        here.jobs.wake("u-1")
        await asyncio.sleep(0.1)
        assert here.world.turns == turns


async def test_nothing_is_done_for_a_job_while_the_lease_is_not_held(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        here.holds_lease = False
        here.world.process = ProcessFacts(ProcessState.MISSING, replacement=-1)
        here.hear()
        await here.world.turn(2)
        assert here.world.applied == []
        here.holds_lease = True
        before = here.world.turns["vit"]
        await here.world.turn(before + 1)
        await idle(here)
        assert here.world.applied
