"""Which code an attempt runs: recorded before any agent receives it, and the same for all nodes of the attempt."""

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
from muster.core.facts import Problem
from muster.core.inference import infer
from muster.core.judge import judge
from muster.core.status.summarise import summarise
from muster_worker.contract.schema import CommandKind
from muster_worker.contract.source import EditedSource
from support.searches import examples
from unit.core.builders import job
from unit.core.simulated import SimulatedNode, World
from unit.core.test_any_operator import HARMFUL, HARMLESS, happen, live, new_world

TURNS = 12
FIRST = RequestedSource("digits-source-a", "a" * 64)
SECOND = RequestedSource("digits-source-b", "b" * 64)
DELETED = RequestedSource("digits-source-c", problem="it does not exist")


def started(policy: FailurePolicy | None = None) -> World:
    plain = job(2, 2)
    spec = plain.spec.model_copy(update={"failure_policy": policy})
    current = World(plain.model_copy(update={"spec": spec}), [SimulatedNode(number, 2) for number in range(2)])
    live(current, 5)
    assert current.status.phase == "Running"
    return current


def rerun(current: World, source: RequestedSource | None, value: str) -> None:
    current.source, current.request = source, value
    live(current, TURNS)


def sources(current: World) -> set[EditedSource | None]:
    """The sources of the last Start commands."""
    commands = [node.command for node in current.nodes if node.command is not None]
    assert all(command.kind == CommandKind.START for command in commands)
    return {command.source for command in commands}


def recorded(current: World) -> SourceStatus | None:
    return current.status.source


def accepted(current: World) -> str:
    condition = current.status.find_condition("Accepted")
    assert condition is not None
    return condition.message


def test_the_next_attempt_runs_the_edited_code_and_the_status_says_so() -> None:
    current = started()
    assert accepted(current) == "The resource is valid"
    rerun(current, FIRST, "1")
    assert (current.status.phase, current.status.attempt) == ("Running", 2)
    assert recorded(current) == SourceStatus(config_map=FIRST.config_map, sha256=FIRST.sha256)
    assert sources(current) == {EditedSource(FIRST.sha256)}
    assert "the ranks run the edited code of ConfigMap digits-source-a, not the code of the spec" in accepted(current)

    rerun(current, SECOND, "2")
    assert sources(current) == {EditedSource(SECOND.sha256)}
    rerun(current, None, "3")
    assert recorded(current) is None
    assert sources(current) == {None}
    assert accepted(current) == "The resource is valid"


def test_the_status_has_the_code_before_an_agent_receives_it() -> None:
    current, starts = started(), []
    current.source, current.request = FIRST, "1"
    for _ in range(TURNS):
        commands = [action.command for action in current.turn(applied=0) if isinstance(action, SendCommand)]
        starts += [(each.source, current.status.source) for each in commands if each.kind == CommandKind.START]
        for action in current.decide_again(current.status):
            current.apply(action)
    first = SourceStatus(config_map=FIRST.config_map, sha256=FIRST.sha256)
    assert starts
    assert all(start == (EditedSource(FIRST.sha256), first) for start in starts)


def test_a_plain_restart_and_a_failure_keep_the_edited_code() -> None:
    current = started(FailurePolicy(max_restarts=3))
    rerun(current, FIRST, "1")
    rerun(current, FIRST, "2")
    assert sources(current) == {EditedSource(FIRST.sha256)}
    current.nodes[1].ranks[0].end(current.now, 7, None, "ValueError: bad label")
    live(current, TURNS)
    assert current.status.attempt == 4
    assert sources(current) == {EditedSource(FIRST.sha256)}


def test_a_change_of_the_annotation_alone_waits_for_the_next_attempt() -> None:
    current = started()
    rerun(current, FIRST, "1")
    current.source = SECOND
    live(current, TURNS)
    assert current.status.source is not None
    assert current.status.source.config_map == FIRST.config_map
    assert current.status.attempt == 2


def test_code_that_can_t_be_used_stops_no_rank_and_the_last_code_remains() -> None:
    current = started(FailurePolicy(max_restarts=3))
    rerun(current, FIRST, "1")
    rerun(current, DELETED, "2")
    assert (current.status.phase, current.status.attempt) == ("Running", 2)
    assert "ConfigMap digits-source-c can't be used: it does not exist" in accepted(current)
    rerun(current, replace(DELETED, config_map="\x1b[2J"), "3")
    assert 'ConfigMap "\\u001b[2J" can\'t be used' in accepted(current)
    current.nodes[0].ranks[0].end(current.now, 7, None, "ValueError: bad label")
    live(current, TURNS)
    assert sources(current) == {EditedSource(FIRST.sha256)}
    rerun(current, SECOND, "2")
    assert current.status.source is not None


def test_the_status_says_that_the_ranks_wait_for_memory_for_their_code() -> None:
    current = started()
    current.source, current.request = FIRST, "1"
    while current.status.phase != RESTARTING:
        live(current)
    problem = Problem(NO_MEMORY_FOR_SOURCE, "The ranks wait for their edited code: no memory")
    facts = infer(current.job, current.status, replace(current.facts(), problem=problem), current.now)
    outcome = judge(current.job, current.status, facts, current.now)
    status = summarise(current.job, current.status, facts, outcome, (), current.now)
    assert (
        status.message == "A user has requested a restart; attempt 2: The ranks wait for their edited code: no memory"
    )
    stalled = status.find_condition("Stalled")
    assert stalled is not None
    assert (stalled.status, stalled.message) == ("False", problem.message)


def test_each_refused_request_is_in_the_status() -> None:
    current = started()
    for value in ("1", "2"):
        rerun(current, DELETED, value)
        assert current.status.restart_request == RestartRequest(value="", refused=value)
    rerun(current, FIRST, "3")
    assert current.status.restart_request == RestartRequest(value="3")
    rerun(current, DELETED, "4")
    assert current.status.restart_request == RestartRequest(value="3", refused="4")
    # The ConfigMap exists now.
    rerun(current, SECOND, "4")
    assert (current.status.attempt, current.status.restart_request) == (3, RestartRequest(value="4"))


def test_a_request_that_was_withdrawn_leaves_no_record() -> None:
    current = started()
    rerun(current, DELETED, "1")
    current.source, current.request = None, None
    live(current, TURNS)
    assert current.status.restart_request is None


def test_a_new_operator_starts_a_late_node_with_the_code_of_its_attempt() -> None:
    current = started()
    rerun(current, FIRST, "1")
    current.source = SECOND
    current.restart_operator()
    live(current, TURNS)
    assert current.status.source is not None
    assert current.status.source.config_map == FIRST.config_map


def test_a_suspended_job_keeps_its_edited_code() -> None:
    current = started()
    rerun(current, FIRST, "1")
    plain = current.job
    current.job = plain.model_copy(update={"spec": plain.spec.model_copy(update={"suspend": True})})
    live(current, 3 * TURNS)
    assert current.status.phase == "Suspended"
    current.job = plain
    live(current, 3 * TURNS)
    assert current.status.phase == "Running"
    assert sources(current) == {EditedSource(FIRST.sha256)}


SOURCES = (None, FIRST, SECOND, DELETED)
RERUN = st.tuples(st.sampled_from(("rerun", "annotate")), st.integers(0, 3))
EVENTS = st.lists(st.tuples(st.one_of(RERUN, HARMLESS, HARMFUL), st.integers(1, 6)), max_size=12)


@settings(max_examples=examples(60), deadline=None)
@given(events=EVENTS)
def test_whatever_happens_all_nodes_of_an_attempt_run_the_code_in_the_status(
    events: Sequence[tuple[tuple[str, int], int]],
) -> None:
    current = new_world(failure_policy=FailurePolicy(max_restarts=2, max_disruptions=2))
    statuses: dict[int, SourceStatus | None] = {}
    for number, ((kind, value), turns) in enumerate(events):
        if kind in ("rerun", "annotate"):
            current.source = SOURCES[value]
            current.request = str(number) if kind == "rerun" else current.request
        else:
            happen(current, kind, value)
        for _ in range(turns):
            live(current)
            for node in current.nodes:
                if node.attempt == current.status.attempt and node.attempt in node.sources:
                    code = statuses.setdefault(node.attempt, current.status.source)
                    assert current.status.source == code
                    assert node.sources[node.attempt] == (None if code is None else EditedSource(code.sha256))
