"""The code of an attempt: the status records it before an agent receives it, and all nodes run the same code."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api.spec.failure_policy import FailurePolicy
from muster.api.status.restarts import RestartRequest
from muster.api.status.source import SourceStatus
from muster.api.status.status import RESTARTING
from muster.core.actions import SendCommand
from muster.core.edited_source import NO_MEMORY_FOR_SOURCE, RequestedSource
from muster.core.fact_completion import complete_facts
from muster.core.judge import judge
from muster.core.problem import Problem
from muster.core.status.summarise import summarise
from muster_worker.contract.schema import CommandKind
from muster_worker.contract.source import EditedSource
from support.searches import choose_example_count
from unit.core.builders import with_spec
from unit.core.simulated import World
from unit.core.test_any_operator import FAULTS, HARMLESS_EVENTS, apply_event, new_world, run_rounds
from unit.core.test_restarts import start_world

ROUNDS = 12
FIRST = RequestedSource("digits-source-a", "a" * 64)
SECOND = RequestedSource("digits-source-b", "b" * 64)
DELETED = RequestedSource("digits-source-c", problem="it does not exist")


def rerun(world: World, source: RequestedSource | None, value: str) -> None:
    world.source, world.request = source, value
    run_rounds(world, ROUNDS)


def started_sources(world: World) -> set[EditedSource | None]:
    """Return the sources of the last Start commands."""
    commands = [node.command for node in world.nodes if node.command is not None]
    assert all(command.kind == CommandKind.START for command in commands)
    return {command.source for command in commands}


def recorded_source(world: World) -> SourceStatus | None:
    return world.status.source


def accepted_message(world: World) -> str:
    find_condition = world.status.find_condition("Accepted")
    assert find_condition is not None
    return find_condition.message


def test_the_next_attempt_runs_the_edited_code_and_the_status_names_it() -> None:
    world = start_world()
    assert accepted_message(world) == "The resource is valid"
    rerun(world, FIRST, "1")
    assert (world.status.phase, world.status.attempt) == ("Running", 2)
    assert recorded_source(world) == SourceStatus(config_map=FIRST.config_map, sha256=FIRST.sha256)
    assert started_sources(world) == {EditedSource(FIRST.sha256)}
    assert "the ranks run the edited code of ConfigMap digits-source-a, not the code of the spec" in accepted_message(
        world
    )

    rerun(world, SECOND, "2")
    assert started_sources(world) == {EditedSource(SECOND.sha256)}
    rerun(world, None, "3")
    assert recorded_source(world) is None
    assert started_sources(world) == {None}
    assert accepted_message(world) == "The resource is valid"


def test_the_status_has_the_code_before_an_agent_receives_it() -> None:
    world, starts = start_world(), []
    world.source, world.request = FIRST, "1"
    for _ in range(ROUNDS):
        commands = [action.command for action in world.run_round(applied=0) if isinstance(action, SendCommand)]
        starts += [
            (start_command.source, world.status.source)
            for start_command in commands
            if start_command.kind == CommandKind.START
        ]
        for action in world.decide_again(world.status):
            world.apply(action)
    first = SourceStatus(config_map=FIRST.config_map, sha256=FIRST.sha256)
    assert starts
    assert all(start == (EditedSource(FIRST.sha256), first) for start in starts)


def test_a_plain_restart_and_a_failure_keep_the_edited_code() -> None:
    world = start_world(FailurePolicy(max_restarts=3))
    rerun(world, FIRST, "1")
    rerun(world, FIRST, "2")
    assert started_sources(world) == {EditedSource(FIRST.sha256)}
    world.nodes[1].ranks[0].end(world.now, 7, None, "ValueError: bad label")
    run_rounds(world, ROUNDS)
    assert world.status.attempt == 4
    assert started_sources(world) == {EditedSource(FIRST.sha256)}


def test_a_change_of_the_annotation_alone_waits_for_the_next_attempt() -> None:
    world = start_world()
    rerun(world, FIRST, "1")
    world.source = SECOND
    run_rounds(world, ROUNDS)
    assert world.status.source is not None
    assert world.status.source.config_map == FIRST.config_map
    assert world.status.attempt == 2


def test_unusable_code_stops_no_rank_and_the_last_code_stays() -> None:
    world = start_world(FailurePolicy(max_restarts=3))
    rerun(world, FIRST, "1")
    rerun(world, DELETED, "2")
    assert (world.status.phase, world.status.attempt) == ("Running", 2)
    assert "ConfigMap digits-source-c can't be used: it does not exist" in accepted_message(world)
    rerun(world, replace(DELETED, config_map="\x1b[2J"), "3")
    assert 'ConfigMap "\\u001b[2J" can\'t be used' in accepted_message(world)
    world.nodes[0].ranks[0].end(world.now, 7, None, "ValueError: bad label")
    run_rounds(world, ROUNDS)
    assert started_sources(world) == {EditedSource(FIRST.sha256)}
    rerun(world, SECOND, "2")
    assert world.status.source is not None


def test_the_status_says_that_the_ranks_wait_for_memory_for_their_code() -> None:
    world = start_world()
    world.source, world.request = FIRST, "1"
    while world.status.phase != RESTARTING:
        run_rounds(world)
    problem = Problem(NO_MEMORY_FOR_SOURCE, "The ranks wait for their edited code: no memory")
    facts = complete_facts(world.job, world.status, replace(world.facts(), problem=problem), world.now)
    outcome = judge(world.job, world.status, facts, world.now)
    status = summarise(world.job, world.status, facts, outcome, (), world.now)
    assert (
        status.message == "A user has requested a restart; attempt 2: The ranks wait for their edited code: no memory"
    )
    stalled = status.find_condition("Stalled")
    assert stalled is not None
    assert (stalled.status, stalled.message) == ("False", problem.message)


def test_each_refused_request_is_in_the_status() -> None:
    world = start_world()
    for value in ("1", "2"):
        rerun(world, DELETED, value)
        assert world.status.restart_request == RestartRequest(value="", refused_value=value)
    rerun(world, FIRST, "3")
    assert world.status.restart_request == RestartRequest(value="3")
    rerun(world, DELETED, "4")
    assert world.status.restart_request == RestartRequest(value="3", refused_value="4")
    # The ConfigMap exists now.
    rerun(world, SECOND, "4")
    assert (world.status.attempt, world.status.restart_request) == (3, RestartRequest(value="4"))


def test_a_withdrawn_request_is_removed_from_the_status() -> None:
    world = start_world()
    rerun(world, DELETED, "1")
    world.source, world.request = None, None
    run_rounds(world, ROUNDS)
    assert world.status.restart_request is None


def test_a_new_operator_starts_a_late_node_with_the_code_of_its_attempt() -> None:
    world = start_world()
    rerun(world, FIRST, "1")
    world.source = SECOND
    world.restart_operator()
    run_rounds(world, ROUNDS)
    assert world.status.source is not None
    assert world.status.source.config_map == FIRST.config_map


def test_a_suspended_job_keeps_its_edited_code() -> None:
    world = start_world()
    rerun(world, FIRST, "1")
    plain = world.job
    world.job = with_spec(plain, suspend=True)
    run_rounds(world, 3 * ROUNDS)
    assert world.status.phase == "Suspended"
    world.job = plain
    run_rounds(world, 3 * ROUNDS)
    assert world.status.phase == "Running"
    assert started_sources(world) == {EditedSource(FIRST.sha256)}


SOURCES = (None, FIRST, SECOND, DELETED)
RERUN_EVENTS = st.tuples(st.sampled_from(("rerun", "annotate")), st.integers(0, 3))
EVENT_LISTS = st.lists(st.tuples(st.one_of(RERUN_EVENTS, HARMLESS_EVENTS, FAULTS), st.integers(1, 6)), max_size=12)


@settings(max_examples=choose_example_count(60, share=6), deadline=None)
@given(events=EVENT_LISTS)
def test_with_any_events_all_nodes_of_an_attempt_run_the_code_in_the_status(
    events: Sequence[tuple[tuple[str, int], int]],
) -> None:
    world = new_world(failure_policy=FailurePolicy(max_restarts=2, max_disruptions=2))
    statuses: dict[int, SourceStatus | None] = {}
    for number, ((kind, value), rounds) in enumerate(events):
        if kind in ("rerun", "annotate"):
            world.source = SOURCES[value]
            world.request = str(number) if kind == "rerun" else world.request
        else:
            apply_event(world, kind, value)
        for _ in range(rounds):
            run_rounds(world)
            for node in world.nodes:
                if node.attempt == world.status.attempt and node.attempt in node.sources:
                    code = statuses.setdefault(node.attempt, world.status.source)
                    assert world.status.source == code
                    assert node.sources[node.attempt] == (None if code is None else EditedSource(code.sha256))
