"""With any events in any order: a job ends, reports it once, and its status never contains anything false."""

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
from support.searches import examples
from unit.core.builders import HEARTBEAT_SECONDS, START, T0, UID, command, compute_status, job
from unit.core.simulated import SimulatedNode, World

LINES = (
    "",
    "ValueError: bad \x1b[31mlabel\x1b[0m",
    "RuntimeError: Connection closed by peer [127.0.0.1]:1",
    "x" * 3000,
    "\u202e\x00\n\ud800é" * 200,
)

EVENTS = st.lists(
    st.one_of(
        st.tuples(
            st.just("end"), st.integers(0, 5), st.sampled_from((0, 0, 0, 1, 7, -9, -15, -6)), st.sampled_from(LINES)
        ),
        st.tuples(st.just("lose"), st.integers(0, 5), st.just(9), st.just("")),
        st.tuples(st.sampled_from(("cut", "heal")), st.integers(0, 5), st.just(0), st.just("")),
        st.tuples(st.just("hang"), st.integers(0, 5), st.just(0), st.just("")),
        st.tuples(st.just("stop"), st.integers(0, 5), st.sampled_from((0, 10)), st.just("")),
        st.tuples(st.just("wait"), st.integers(0, 5), st.integers(0, 40), st.just("")),
        st.tuples(st.just("outside"), st.integers(0, 5), st.just(143), st.just("")),
    ),
    max_size=8,
)


def check(world: World, before: Status) -> None:
    status, ranks = world.status, world.status.ranks
    assert ranks is not None
    assert sum(entry.count for entry in ranks.by_state) == ranks.world == 6
    assert len(ranks.details) <= 16
    assert 0 < len(status.message.encode()) <= 1024
    assert not any(unicodedata.category(char) in {"Cc", "Cs"} for char in status.message)
    running = next((entry.count for entry in ranks.by_state if entry.state == "Running"), 0)
    reported = [fact.report for node in world.nodes for fact in (node.known.ranks if node.known else ())]
    assert running == ranks.running <= sum(entry.state == RankState.RUNNING for entry in reported)
    if before.final_condition is not None:
        assert status == before
    if status.phase == "Succeeded":
        ends = [entry for node in world.nodes for entry in node.ranks]
        assert [(entry.exit_code, entry.stopped) for entry in ends] == [(0, False)] * 6
    again = world.decide_again(before)
    assert [action for action in again if not isinstance(action, KillNode)] == []


def happen(world: World, kind: str, number: int, value: int, line: str) -> None:
    node = world.nodes[number // 2]
    if kind == "end":
        for entry in node.ranks[number % 2 : number % 2 + 1]:
            entry.end(world.now, value if value >= 0 else None, -value if value < 0 else None, line)
    elif kind in ("lose", "outside") and not node.is_disconnected:
        node.exit(world.now, value if kind == "outside" else None, 9 if kind == "lose" else None)
    elif kind == "cut":
        node.disconnect(world.now)
    elif kind == "heal":
        node.reconnect(world.now)
    elif kind == "hang":
        node.is_frozen = True
    elif kind == "stop":
        world.stop = world.stop or StopRequest(world.now, "Ctrl-C", float(value))
    elif kind == "wait":
        world.now += value


def live(world: World, *, newest_first: bool = False) -> None:
    before = world.status
    world.run_round(newest_first=newest_first)
    check(world, before)


# make test tries some, make test-long many.
ANY_JOB = given(
    events=EVENTS,
    starts=st.lists(st.sampled_from((2, 2, 2, 1)), min_size=3, max_size=3),
    first=st.integers(0, 4),
    newest_first=st.booleans(),
)


@settings(max_examples=examples(100), deadline=None)
@ANY_JOB
def test_every_job_ends_and_says_only_what_is_true(
    events: Sequence[tuple[str, int, int, str]], starts: Sequence[int], first: int, *, newest_first: bool
) -> None:
    check_job(events, starts, first, newest_first=newest_first)


@pytest.mark.long
@settings(max_examples=400, deadline=None)
@ANY_JOB
def test_many_jobs_end_and_say_only_what_is_true(
    events: Sequence[tuple[str, int, int, str]], starts: Sequence[int], first: int, *, newest_first: bool
) -> None:
    check_job(events, starts, first, newest_first=newest_first)


def check_job(
    events: Sequence[tuple[str, int, int, str]], starts: Sequence[int], first: int, *, newest_first: bool
) -> None:
    """Apply the events to a job: it ends, and each of its statuses is true."""
    world = World(job(3, 2, startup=60), [SimulatedNode(number, starts[number]) for number in range(3)])
    for _ in range(first):
        live(world)
    for event in events:
        happen(world, *event)
        live(world, newest_first=newest_first)
    for _ in range(10):
        live(world)
    # The rest of the work is done; a user ends an agent that hangs, and a disconnected one remains.
    for node in world.nodes:
        for entry in node.ranks:
            entry.end(world.now, 0, None)
    while any(node.is_disconnected for node in world.nodes) and not world.is_over and world.now < T0 + 600:
        world.now += 10
        live(world)
    # The job does not wait for a disconnected agent.
    assert (
        world.is_over
        or any(node.is_frozen for node in world.nodes)
        or not any(node.is_disconnected for node in world.nodes)
    )
    for _ in range(5):
        live(world)
    if not world.is_over:
        world.stop = world.stop or StopRequest(world.now, "Ctrl-C", 10.0)
    for _ in range(20):
        world.now += 2
        live(world)

    assert world.is_over
    assert world.status.final_condition is not None
    assert world.decide_again(world.status) == ()


END = st.tuples(
    st.integers(0, 48).map(lambda number: number / 16),
    st.sampled_from((0, 1, 7, -9, -15)),
    st.sampled_from(LINES[:3]),
    st.booleans(),
)


def history(node: int, ends: Sequence[tuple[float, int, str, bool]]) -> list[tuple[Report, float]]:
    """Return all reports of a node's agent with their times: one at each end, and one when all have ended."""
    reports = []
    times = [0.5, *sorted(at for at, *_ in ends), 4.0]
    for sequence, now in enumerate(times):
        ranks = []
        for local, (at, code, line, stopped) in enumerate(ends):
            over = at <= now
            ranks.append(
                RankReport(
                    2 * node + local,
                    local,
                    RankState.EXITED if over else RankState.RUNNING,
                    exit_code=code if over and code >= 0 else None,
                    signal=-code if over and code < 0 else None,
                    started_age=now,
                    ended_age=now - at if over else None,
                    stopped=stopped and over,
                    last_lines=(line,) if line else (),
                    step=int(8 * min(at, now)),
                    step_age=now - int(8 * min(at, now)) / 8,
                )
            )
        phase = AgentPhase.ENDED if now == times[-1] else AgentPhase.RUNNING
        reports.append((Report(UID, node, 0, 1, sequence, phase, ranks=tuple(ranks)), START + now))
    return reports


def status_after(mail: Sequence[tuple[Report, float]], *, each: bool) -> Status:
    """Return the status after all of `mail`; with `each` it is computed again after every report."""
    allowed: list[AgentFacts | None] = [None, None, None]
    process = ProcessFacts(ProcessState.RUNNING, started_at=T0)
    status = Status()
    for index, (report, at) in enumerate(mail):
        allowed[report.node] = merge_report(allowed[report.node], report, at)
        if each or index == len(mail) - 1:
            nodes = (
                NodeFacts(node, f"digits-{node}", process, allowed[node], command(CommandKind.STOP, 2.0))
                for node in range(3)
            )
            status = compute_status(job(3, 2), status, JobFacts(T0, tuple(nodes), HEARTBEAT_SECONDS), START + 5)
    return status


@settings(max_examples=examples(60), deadline=None)
@given(ends=st.lists(st.lists(END, min_size=2, max_size=2), min_size=3, max_size=3), seed=st.integers(0, 2**32))
def test_the_order_of_reports_does_not_change_the_end(
    ends: Sequence[Sequence[tuple[float, int, str, bool]]], seed: int
) -> None:
    mail = [entry for node in range(3) for entry in history(node, ends[node])]
    shuffled = [*mail, *mail[::2]]
    random.Random(seed).shuffle(shuffled)  # noqa: S311 - an order, not a secret

    once, in_order, out_of_order = (
        status_after(mail, each=False),
        status_after(mail, each=True),
        status_after(shuffled, each=True),
    )

    assert once.final_condition is not None
    assert in_order == once
    assert out_of_order == once
