"""With any events in any order a job ends once, and each of its statuses is correct."""

import random
import unicodedata
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api.status.status import Status
from muster.core.actions import KillNode
from muster.core.facts import AgentFacts, JobFacts, NodeFacts, ProcessFacts, ProcessState, StopRequest
from muster.core.reports.merge import merge_report
from muster_worker.contract.schema import AgentPhase, CommandKind, RankReport, RankState, Report
from support.searches import choose_example_count
from unit.core.builders import HEARTBEAT_SECONDS, START, T0, UID, command, compute_status, job
from unit.core.simulated import SimulatedNode, World

OUTPUT_LINES = (
    "",
    "ValueError: bad \x1b[31mlabel\x1b[0m",
    "RuntimeError: Connection closed by peer [127.0.0.1]:1",
    "x" * 3000,
    "\u202e\x00\n\ud800é" * 200,
)

EVENTS = st.lists(
    st.one_of(
        st.tuples(
            st.just("end rank"),
            st.integers(0, 5),
            st.sampled_from((0, 0, 0, 1, 7, -9, -15, -6)),
            st.sampled_from(OUTPUT_LINES),
        ),
        st.tuples(st.just("kill container"), st.integers(0, 5), st.just(9), st.just("")),
        st.tuples(st.sampled_from(("disconnect", "reconnect")), st.integers(0, 5), st.just(0), st.just("")),
        st.tuples(st.just("freeze agent"), st.integers(0, 5), st.just(0), st.just("")),
        st.tuples(st.just("stop"), st.integers(0, 5), st.sampled_from((0, 10)), st.just("")),
        st.tuples(st.just("wait"), st.integers(0, 5), st.integers(0, 40), st.just("")),
        st.tuples(st.just("exit agent"), st.integers(0, 5), st.just(143), st.just("")),
    ),
    max_size=8,
)


def check_status(world: World, before: Status) -> None:
    status, ranks = world.status, world.status.ranks
    assert ranks is not None
    assert sum(entry.count for entry in ranks.by_state) == ranks.world == 6
    assert len(ranks.details) <= 16
    assert 0 < len(status.message.encode()) <= 1024
    assert not any(unicodedata.category(char) in {"Cc", "Cs"} for char in status.message)
    running = next((entry.count for entry in ranks.by_state if entry.state == "Running"), 0)
    reported = [fact.report for node in world.nodes for fact in (node.agent_facts.ranks if node.agent_facts else ())]
    assert running == ranks.running <= sum(entry.state == RankState.RUNNING for entry in reported)
    if before.final_condition is not None:
        assert status == before
    if status.phase == "Succeeded":
        ends = [entry for node in world.nodes for entry in node.ranks]
        assert [(entry.exit_code, entry.stopped) for entry in ends] == [(0, False)] * 6
    actions = world.decide_again(before)
    assert [action for action in actions if not isinstance(action, KillNode)] == []


def apply_event(world: World, kind: str, number: int, value: int, line: str) -> None:
    node = world.nodes[number // 2]
    if kind == "end rank":
        for entry in node.ranks[number % 2 : number % 2 + 1]:
            entry.end(world.now, value if value >= 0 else None, -value if value < 0 else None, line)
    elif kind in ("kill container", "exit agent") and not node.is_disconnected:
        node.exit(world.now, value if kind == "exit agent" else None, 9 if kind == "kill container" else None)
    elif kind == "disconnect":
        node.disconnect(world.now)
    elif kind == "reconnect":
        node.reconnect(world.now)
    elif kind == "freeze agent":
        node.is_frozen = True
    elif kind == "stop":
        world.stop = world.stop or StopRequest(world.now, "Ctrl-C", float(value))
    elif kind == "wait":
        world.now += value


def run_and_check_round(world: World, *, newest_first: bool = False) -> None:
    before = world.status
    world.run_round(newest_first=newest_first)
    check_status(world, before)


# `make test` runs some examples, `make test-long` many.
ANY_JOB = given(
    events=EVENTS,
    rank_counts=st.lists(st.sampled_from((2, 2, 2, 1)), min_size=3, max_size=3),
    rounds_before=st.integers(0, 4),
    newest_first=st.booleans(),
)


@settings(max_examples=choose_example_count(100, share=8), deadline=None)
@ANY_JOB
def test_a_job_with_any_events_ends_and_its_statuses_are_correct(
    events: Sequence[tuple[str, int, int, str]], rank_counts: Sequence[int], rounds_before: int, *, newest_first: bool
) -> None:
    check_job(events, rank_counts, rounds_before, newest_first=newest_first)


@pytest.mark.long
@settings(max_examples=400, deadline=None)
@ANY_JOB
def test_many_jobs_with_any_events_end_and_their_statuses_are_correct(
    events: Sequence[tuple[str, int, int, str]], rank_counts: Sequence[int], rounds_before: int, *, newest_first: bool
) -> None:
    check_job(events, rank_counts, rounds_before, newest_first=newest_first)


def check_job(
    events: Sequence[tuple[str, int, int, str]], rank_counts: Sequence[int], rounds_before: int, *, newest_first: bool
) -> None:
    """Apply the events to a job. Check that it ends, and check its status after each round."""
    world = World(job(3, 2, startup=60), [SimulatedNode(number, rank_counts[number]) for number in range(3)])
    for _ in range(rounds_before):
        run_and_check_round(world)
    for event in events:
        apply_event(world, *event)
        run_and_check_round(world, newest_first=newest_first)
    for _ in range(10):
        run_and_check_round(world)
    # The remaining ranks succeed. Disconnected agents stay disconnected.
    for node in world.nodes:
        for entry in node.ranks:
            entry.end(world.now, 0, None)
    while any(node.is_disconnected for node in world.nodes) and not world.is_over and world.now < T0 + 600:
        world.now += 10
        run_and_check_round(world)
    # The job does not wait for a disconnected agent.
    assert (
        world.is_over
        or any(node.is_frozen for node in world.nodes)
        or not any(node.is_disconnected for node in world.nodes)
    )
    for _ in range(5):
        run_and_check_round(world)
    if not world.is_over:
        world.stop = world.stop or StopRequest(world.now, "Ctrl-C", 10.0)
    for _ in range(20):
        world.now += 2
        run_and_check_round(world)

    assert world.is_over
    assert world.status.final_condition is not None
    assert world.decide_again(world.status) == ()


RANK_ENDS = st.tuples(
    st.integers(0, 48).map(lambda number: number / 16),
    st.sampled_from((0, 1, 7, -9, -15)),
    st.sampled_from(OUTPUT_LINES[:3]),
    st.booleans(),
)


def reports_of_node(node: int, ends: Sequence[tuple[float, int, str, bool]]) -> list[tuple[Report, float]]:
    """Return the reports of a node's agent with their times: one after each rank's end, and one at the end."""
    reports = []
    times = [0.5, *sorted(at for at, *_ in ends), 4.0]
    for sequence, now in enumerate(times):
        ranks = []
        for local, (at, code, line, stopped) in enumerate(ends):
            has_ended = at <= now
            ranks.append(
                RankReport(
                    2 * node + local,
                    local,
                    RankState.EXITED if has_ended else RankState.RUNNING,
                    exit_code=code if has_ended and code >= 0 else None,
                    signal=-code if has_ended and code < 0 else None,
                    started_age=now,
                    ended_age=now - at if has_ended else None,
                    stopped=stopped and has_ended,
                    last_lines=(line,) if line else (),
                    step=int(8 * min(at, now)),
                    step_age=now - int(8 * min(at, now)) / 8,
                )
            )
        phase = AgentPhase.ENDED if now == times[-1] else AgentPhase.RUNNING
        reports.append((Report(UID, node, 0, 1, sequence, phase, ranks=tuple(ranks)), START + now))
    return reports


def status_after(reports: Sequence[tuple[Report, float]], *, at_each_report: bool) -> Status:
    """Return the status after these reports. `at_each_report` computes one after each report, not only the last."""
    agents: list[AgentFacts | None] = [None, None, None]
    process = ProcessFacts(ProcessState.RUNNING, started_at=T0)
    status = Status()
    for index, (report, at) in enumerate(reports):
        agents[report.node] = merge_report(agents[report.node], report, at)
        if at_each_report or index == len(reports) - 1:
            nodes = (
                NodeFacts(node, f"digits-{node}", process, agents[node], command(CommandKind.STOP, 2.0))
                for node in range(3)
            )
            status = compute_status(job(3, 2), status, JobFacts(T0, tuple(nodes), HEARTBEAT_SECONDS), START + 5)
    return status


@settings(max_examples=choose_example_count(60, share=6), deadline=None)
@given(ends=st.lists(st.lists(RANK_ENDS, min_size=2, max_size=2), min_size=3, max_size=3), seed=st.integers(0, 2**32))
def test_the_order_of_reports_does_not_change_the_final_status(
    ends: Sequence[Sequence[tuple[float, int, str, bool]]], seed: int
) -> None:
    reports = [entry for node in range(3) for entry in reports_of_node(node, ends[node])]
    shuffled = [*reports, *reports[::2]]
    random.Random(seed).shuffle(shuffled)  # noqa: S311 - an order, not a secret

    once, in_order, out_of_order = (
        status_after(reports, at_each_report=False),
        status_after(reports, at_each_report=True),
        status_after(shuffled, at_each_report=True),
    )

    assert once.final_condition is not None
    assert in_order == once
    assert out_of_order == once
