import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_worker.agent.exit_code import compute_exit_code
from muster_worker.agent.reports import Observation, Snapshot, encode_report, make_report
from muster_worker.agent.state import (
    ActivityFound,
    AgentTerminated,
    ErrorSeen,
    Event,
    LauncherRecord,
    MetricRecord,
    NodeState,
    PhaseReached,
    ProblemFound,
    RaisedError,
    RankEnded,
    RankStarted,
    StopBegan,
    apply_event,
    begin_attempt,
)
from muster_worker.agent.termination import MAX_BYTES, build_summary
from muster_worker.contract import wire
from muster_worker.contract.error_text import RankError
from muster_worker.contract.schema import (
    MAX_LAST_LINES,
    MAX_LINE_CHARS,
    MAX_METRICS,
    MAX_REPORT_BYTES,
    AgentPhase,
    AgentProblem,
    RankState,
    Report,
)


def a_state(*events: Event, procs: int = 2) -> NodeState:
    state = begin_attempt(NodeState("uid", 1, 1), 1, 1 * procs, procs, 0.0)
    for event in events:
        state = apply_event(state, event)
    return state


def report_of(state: NodeState, now: float = 100.0) -> Report:
    return make_report(Snapshot(state, {}), 1, now)


def test_every_rank_is_expected_from_the_start() -> None:
    report = report_of(a_state())
    assert [(rank.rank, rank.local_rank, rank.state) for rank in report.ranks] == [
        (2, 0, RankState.STARTING),
        (3, 1, RankState.STARTING),
    ]
    assert report.phase == AgentPhase.RUNNING


def test_a_life() -> None:
    report = report_of(a_state(RankStarted(2, 77, 90.0), ActivityFound(2, "backward"), RankEnded(2, 95.0, 7)))
    rank = report.ranks[0]
    assert (rank.state, rank.pid, rank.exit_code, rank.activity) == (RankState.EXITED, 77, 7, "backward")
    assert (rank.started_age, rank.ended_age) == (10.0, 5.0)


@pytest.mark.parametrize(("at", "stopped"), [(49.9, False), (50.0, True), (60.0, True)])
def test_stopped_is_a_matter_of_time_not_of_news(at: float, *, stopped: bool) -> None:
    assert report_of(a_state(StopBegan(50.0), RankEnded(2, at, 1))).ranks[0].stopped == stopped


@pytest.mark.parametrize(
    ("events", "stepped_at", "error"),
    [
        ((RaisedError("E", 90.0, is_uncaught=True),), None, RankError("E", 10.0, uncaught=True)),
        ((RaisedError("E", 90.0),), 89.0, RankError("E", 10.0)),
        ((RaisedError("E", 90.0),), 91.0, None),  # the rank has handled it
        ((RaisedError("E", 90.0, is_uncaught=True),), 91.0, None),  # another thread trains on
        ((RaisedError("E", 90.0, is_printed=True),), None, RankError("E", 10.0, printed=True)),
        ((RaisedError("E", -21.0, is_printed=True),), None, None),
        ((RaisedError("E", 90.0, is_uncaught=True), RankEnded(2, 95.0, 0)), None, None),
        ((RaisedError("E", 90.0), StopBegan(91.0), RankEnded(2, 92.0, None, 9)), None, RankError("E", 10.0)),
        ((RaisedError("E", 90.0), StopBegan(91.0), RankEnded(2, 92.0, 0)), None, RankError("E", 10.0)),
        ((StopBegan(89.0), RaisedError("E", 90.0, is_uncaught=True), RankEnded(2, 92.0, 1)), None, None),
        ((RaisedError("E", 90.0), RaisedError("F", 91.0, is_printed=True)), None, RankError("E", 10.0)),
        ((RaisedError("F", 91.0, is_printed=True), RaisedError("E", 90.0)), None, RankError("E", 10.0)),
    ],
)
def test_an_error_that_may_have_ended_the_rank(
    events: tuple[Event | RaisedError, ...], stepped_at: float | None, error: RankError | None
) -> None:
    state = a_state(*(ErrorSeen(2, event) if isinstance(event, RaisedError) else event for event in events))
    observations = {2: Observation(stepped_at=stepped_at)}
    assert make_report(Snapshot(state, observations), 1, 100.0).ranks[0].error == error


def test_a_process_inside_takes_over() -> None:
    rank = report_of(a_state(RankStarted(2, 10, 90.0), RankStarted(2, 11, 95.0))).ranks[0]
    assert (rank.pid, rank.started_age) == (11, 10.0)


def test_first_word_stays() -> None:
    state = a_state(
        RankEnded(2, 1.0, 7),
        RankEnded(2, 2.0, 0),
        RankStarted(2, 5, 3.0),
        ProblemFound(AgentProblem("NoPort", "first")),
        ProblemFound(AgentProblem("NoPort", "second")),
        LauncherRecord("torchrun", 1.0, 1),
        LauncherRecord("torchrun", 2.0, 0),
    )
    report = report_of(state)
    assert (report.ranks[0].exit_code, report.problem) == (7, AgentProblem("NoPort", "first"))
    assert report.launcher is not None
    assert report.launcher.exit_code == 1


def test_ranks_of_others_change_nothing() -> None:
    assert a_state(RankEnded(0, 1.0, 7), RankStarted(99, 1, 1.0)) == a_state()


def test_a_metrics_last_value_counts() -> None:
    state = a_state(MetricRecord("b", 1.0, 2, 90.0), MetricRecord("a", 2.0, 3, 91.0), MetricRecord("b", 3.0, 3, 99.0))
    assert [(metric.name, metric.value, metric.age) for metric in report_of(state).metrics] == [
        ("a", 2.0, 9.0),
        ("b", 3.0, 1.0),
    ]


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ((RankEnded(2, 1.0, 0), RankEnded(3, 1.0, 0)), 0),
        ((RankEnded(2, 2.0, 7), RankEnded(3, 1.0, None, 9)), 137),
        ((RankEnded(2, 2.0, 7), StopBegan(2.5), RankEnded(3, 3.0, None, 15)), 7),
        ((StopBegan(0.5), RankEnded(2, 1.0, None, 15), RankEnded(3, 1.0, None, 15)), 143),
        ((RankEnded(2, 1.0, reason="WrapperLost"),), 1),
        ((LauncherRecord("torchrun", 1.0, 3),), 3),
        ((RankEnded(2, 1.0, 0),), 1),  # one was never started
        ((StopBegan(0.5), RankEnded(2, 1.0, 0), RankEnded(3, 1.0, 0)), 1),  # stopped before they had finished
        ((RankEnded(2, 1.0, 0), RankEnded(3, 1.0, 0), AgentTerminated(2.0)), 0),  # the signal came afterwards
        ((RankEnded(2, 1.0, 7), RankEnded(3, 1.0, 0), AgentTerminated(2.0)), 7),
        ((RankEnded(2, 1.0, 0), AgentTerminated(2.0), StopBegan(2.0), RankEnded(3, 3.0, 0)), 143),
        ((AgentTerminated(2.0),), 143),
        ((ProblemFound(AgentProblem("BadStart", "x")), RankEnded(2, 1.0, 0), RankEnded(3, 1.0, 0)), 1),
    ],
)
def test_exit_code(events: tuple[Event, ...], code: int) -> None:
    assert compute_exit_code(a_state(*events)) == code


@pytest.mark.parametrize(("terminated", "code"), [(False, 1), (True, 143)])
def test_an_agent_that_started_nothing_has_not_succeeded(terminated: bool, code: int) -> None:  # noqa: FBT001
    state = NodeState("uid", 0, 1, terminated_at=1.0 if terminated else None)
    assert compute_exit_code(state) == code
    word = json.loads(build_summary(make_report(Snapshot(state, {}), 1, 2.0), code))
    assert (word["ranks"], word["succeeded"], word["terminated"]) == (0, 0, terminated)


def test_the_summary_counts_who_came_to_a_good_end_of_their_own() -> None:
    state = a_state(RankEnded(2, 1.0, 0), StopBegan(2.0), RankEnded(3, 3.0, 0))
    word = json.loads(build_summary(make_report(Snapshot(state, {}), 1, 4.0), 1))
    assert (word["ranks"], word["succeeded"]) == (2, 1)


EVENTS = st.lists(
    st.one_of(
        st.builds(RankStarted, st.integers(2, 3), st.integers(1, 99), st.floats(0, 100)),
        st.builds(RankEnded, st.integers(2, 3), st.floats(0, 100), st.integers(0, 255)),
        st.builds(StopBegan, st.floats(0, 100)),
        st.builds(PhaseReached, st.sampled_from(AgentPhase.ALL)),
        st.builds(MetricRecord, st.sampled_from("ab"), st.floats(0, 1), st.integers(2, 3), st.floats(0, 100)),
    ),
    max_size=20,
)


@given(EVENTS)
def test_after_any_events_the_report_is_readable_and_no_ended_rank_runs(events: list[Event]) -> None:
    report = report_of(a_state(*events))
    assert wire.decode(Report, encode_report(report)) == report
    dead = {event.rank for event in events if isinstance(event, RankEnded)}
    assert {rank.rank for rank in report.ranks if rank.state == RankState.EXITED} == dead


@pytest.mark.parametrize("letter", ["x", "\u00e9", "\U0001f600"])
def test_a_report_with_the_longest_output_is_within_the_limit(letter: str) -> None:
    lines = (letter * MAX_LINE_CHARS,) * MAX_LAST_LINES
    state = a_state(procs=128)
    snapshot = Snapshot(state, {rank: Observation(lines) for rank in range(256)})
    body = encode_report(make_report(snapshot, 1, 100.0))
    assert len(body) <= MAX_REPORT_BYTES
    assert wire.decode(Report, body).ranks[0].last_lines != ()


@pytest.mark.parametrize("letter", ["x", "\u00e9", "\U0001f600"])
def test_the_summary_fits_and_is_json(letter: str) -> None:
    lines = (letter * MAX_LINE_CHARS,) * MAX_LAST_LINES
    state = a_state(RankEnded(3, 1.0, 7), ProblemFound(AgentProblem("NoPort", letter * 5000)))
    report = make_report(Snapshot(state, {3: Observation(lines)}, lines), 1, 100.0)
    text = build_summary(report, 7)
    assert len(text) <= MAX_BYTES
    assert json.loads(text)["firstFailure"]["rank"] == 3


def test_what_a_rank_says_of_times_stays_within_its_attempt() -> None:
    state = begin_attempt(NodeState("uid", 0, 1), 1, 0, 1, 90.0)
    for event in (RankStarted(0, 77, -1e9), MetricRecord("loss", 1.0, 0, -1e9), RankEnded(0, 1e300, 7)):
        state = apply_event(state, event)
    report = make_report(Snapshot(state, {0: Observation(step=1, stepped_at=1e-9)}), 1, 100.0)
    rank = report.ranks[0]
    assert (rank.started_age, rank.step_age, rank.ended_age, report.metrics[0].age) == (10.0, 10.0, 0.0, 10.0)


def test_more_metrics_than_a_report_may_have_are_left_out() -> None:
    state = a_state(*(MetricRecord(f"m{number}", 1.0, 2, 1.0) for number in range(MAX_METRICS + 1)))
    assert len(state.metrics) == MAX_METRICS
    assert apply_event(state, MetricRecord("m0", 2.0, 2, 2.0)).metrics[0].value == 2.0
