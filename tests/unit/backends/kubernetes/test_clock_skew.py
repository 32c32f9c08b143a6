"""Clocks of nodes, controllers and API server that differ by up to a minute: muster still finds the first failure."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.core.facts import ProcessFacts
from muster.core.failure.problems import UNREACHABLE_SECONDS, find_unreachable_time
from muster.diagnose.kubernetes.node_facts import apply_agent_report
from muster.diagnose.kubernetes.pod_facts import derive_process_facts
from muster.objects.kubernetes.containers import Running, Terminated
from muster.objects.kubernetes.observations import Observation, Observations, observe_pod
from muster.objects.kubernetes.pods import Condition, PodView
from muster_worker.contract.schema import AgentPhase
from support.searches import choose_example_count
from unit.backends.kubernetes.skewed_world import skewed_world
from unit.core.builders import START, agent, facts, node
from unit.core.simulated import World
from unit.diagnose.kubernetes.pod_cases import view

SKEWS = (-60.0, -3.0, 0.0, 3.0, 60.0)
LINE = "RuntimeError: [gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.0.0.1]:43121"


def running(skew: float = 0.0, at: float = START) -> PodView:
    pod = view("running")
    placed = Condition("PodScheduled", is_true=True, at=at - 1 + skew)
    return replace(
        pod, trainer=replace(pod.trainer, state=Running(at + skew)), conditions=(placed,), deletion_requested_at=None
    )


def ended(pod: PodView, at: float, exit_code: int = 137) -> PodView:
    state = Terminated(exit_code, "Error", started_at=START, finished_at=at)
    return replace(pod, trainer=replace(pod.trainer, state=state))


def facts_after(*looks: tuple[float, PodView]) -> tuple[ProcessFacts, Observations]:
    """Return the facts after these observations of a pod."""
    seen = None
    for at, pod in looks:
        seen = observe_pod(pod, seen, at)
    assert seen is not None
    return derive_process_facts(looks[-1][1], (), seen), seen


@pytest.mark.parametrize("skew", SKEWS)
def test_an_end_is_neither_before_the_agents_word_nor_after_it_was_seen(skew: float) -> None:
    process, seen = facts_after((START + 1, running(skew)), (START + 101.5, ended(running(skew), START + 100 + skew)))
    heard = replace(agent(0, AgentPhase.RUNNING), last_report_at=START + 99.5)
    heard = replace(heard, report=replace(heard.report, replacement=process.replacement))
    assert seen.end == Observation(START + 101.5, START + 1)
    ended_at = apply_agent_report(process, heard, seen.end.at).ended_at
    assert ended_at is not None
    assert START + 99.5 <= ended_at <= START + 101.5


@pytest.mark.parametrize("skew", SKEWS)
def test_who_is_deleted_while_it_runs_was_deleted(skew: float) -> None:
    leaving = replace(running(), deletion_requested_at=START + 50, deletion_grace_seconds=30)
    process, _ = facts_after(
        (START + 1, running()), (START + 50.1, leaving), (START + 52, ended(leaving, START + 51 + skew))
    )
    assert process.problem is not None
    assert process.problem.reason == "PodDeleted"


@pytest.mark.parametrize("skew", SKEWS)
def test_who_had_ended_before_was_not_deleted(skew: float) -> None:
    over = ended(running(), START + 48 + skew, exit_code=1)
    leaving = replace(over, deletion_requested_at=START + 50, deletion_grace_seconds=0)
    process, _ = facts_after((START + 1, running()), (START + 49, over), (START + 50.1, leaving))
    assert process.problem is None


@pytest.mark.parametrize("skew", SKEWS)
def test_the_api_servers_clock_does_not_make_a_deletion_earlier(skew: float) -> None:
    over = ended(running(), START + 48, exit_code=1)
    leaving = replace(over, deletion_requested_at=START + 50 + skew, deletion_grace_seconds=0)
    process, _ = facts_after((START + 1, running()), (START + 49, over), (START + 50.1, leaving))
    assert process.problem is None


@pytest.mark.parametrize("skew", SKEWS)
def test_a_machines_wrong_clock_does_not_shorten_an_agents_time_to_report(skew: float) -> None:
    unplaced = replace(view("unschedulable-selector"), deletion_requested_at=None)
    process, _ = facts_after((START - 2, unplaced), (START + 1, running(skew)))
    at = find_unreachable_time(node(0, process=process), facts(node(0, process=process)))
    assert at is not None
    assert START - 2 < at - UNREACHABLE_SECONDS <= START + 1
    assert process.scheduled_at is not None
    assert START - 2 < process.scheduled_at <= START + 1


def test_who_was_not_there_takes_the_clusters_word_but_for_the_future() -> None:
    process, _ = facts_after((START + 300, ended(running(), START + 100)))
    assert process.ended_at == START + 100
    process, _ = facts_after((START + 90, ended(running(), START + 100)))
    assert process.ended_at == START + 90


def test_a_machine_that_was_cut_off_tells_late_of_what_was_long_ago() -> None:
    ready = (Condition("Ready", is_true=True), Condition("ContainersReady", is_true=True))
    disconnected = (Condition("Ready", is_true=False), Condition("ContainersReady", is_true=True))
    before = replace(running(), conditions=ready)
    cut_off = replace(before, conditions=disconnected)
    process, seen = facts_after(
        (START + 1, before), (START + 50, cut_off), (START + 70, replace(ended(before, START + 10), conditions=ready))
    )
    assert process.ended_at == START + 10
    assert seen.disconnection is None


def test_a_grace_that_is_cut_short_is() -> None:
    patient = replace(running(), deletion_requested_at=START + 10, deletion_grace_seconds=3600)
    hurried = replace(patient, deletion_grace_seconds=1)
    assert facts_after((START + 10, patient))[0].deletion_deadline == START + 3610
    assert facts_after((START + 10, patient), (START + 20, hurried))[0].deletion_deadline == START + 21
    # later changes don't give it more time
    assert (
        facts_after((START + 10, patient), (START + 20, hurried), (START + 30, hurried))[0].deletion_deadline
        == START + 21
    )


UNTIL_RUNNING = 10


def victim_of(world: World) -> str:
    """Return the node in the status' message: the one that failed, or whose rank did."""
    condition = world.status.final_condition
    assert condition is not None, world.status
    assert condition.type == "Failed"
    return next(f"digits-{number}" for number in range(3) if f"digits-{number}" in world.status.message.split(";")[0])


def others_miss_it(world: World, victim: int) -> None:
    """A tenth of a second later."""
    for entry in world.nodes:
        if entry.number != victim:
            for rank in entry.ranks:
                rank.end(world.now + 0.1, 1, None, LINE)


skews = st.tuples(*(st.floats(-60, 60),) * 3)
delays = st.tuples(*(st.floats(0, 2),) * 3)


@settings(max_examples=choose_example_count(80, share=8), deadline=None)
@given(
    skews=skews,
    delays=delays,
    victim=st.integers(0, 2),
    kind=st.sampled_from(("fail", "lose")),
    second=st.tuples(st.integers(1, 2), st.integers(0, 12)),
    missed=st.booleans(),
)
def test_the_status_names_the_first_failure_despite_wrong_clocks(
    skews: tuple[float, ...],
    delays: tuple[float, ...],
    victim: int,
    kind: str,
    second: tuple[int, int],
    missed: bool,  # noqa: FBT001 - drawn at random
) -> None:
    world = skewed_world(skews, delays)
    for _ in range(UNTIL_RUNNING):
        world.now += 0.9
        world.run_round()
    assert world.status.phase == "Running"
    if kind == "fail":
        world.nodes[victim].ranks[0].end(world.now, 7, None, "ValueError: bad label")
    else:
        world.kill_container(victim)
    if missed:
        others_miss_it(world, victim)
    other, later = (victim + second[0]) % 3, second[1]
    for turn in range(60):
        world.now += 0.9
        world.run_round()
        # A stopped or unaffected node may be lost as well: it was not the first.
        if turn == later + 3:
            world.kill_container(other)
    assert victim_of(world) == f"digits-{victim}", world.status.message
