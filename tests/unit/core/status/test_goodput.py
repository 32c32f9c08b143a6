"""The goodput in a status: productive time, and lost time by cause."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api.spec.failure_policy import FailurePolicy
from muster.api.spec.job import Job
from muster.api.status.goodput import CAUSES, Goodput, LostTime
from muster.api.status.reader import read_status
from muster.api.status.status import Status
from muster.api.yaml.serialise import serialise_status
from muster.cli.board.goodput_lines import format_goodput
from muster.core.decide import decide
from muster.core.devices import Devices
from muster.core.fact_completion import complete_facts
from muster.core.facts import JobFacts, NodeFacts, ProcessFacts, ProcessState, RankFacts
from muster.core.judge import judge
from muster.core.problem import Problem
from muster.core.status.significant_change import is_significant_change
from muster.core.status.summarise import summarise
from muster_worker.contract.schema import AgentPhase, CommandKind
from support.searches import choose_example_count
from unit.core.builders import (
    START,
    T0,
    agent,
    command,
    ctrl_c_request,
    exited_rank,
    facts,
    job,
    missing_node,
    node,
    rank,
    with_spec,
)

POLICY = FailurePolicy(max_restarts=30)


def restarting_job() -> Job:
    return with_spec(job(1, 2), failure_policy=POLICY)


def next_status(current: Job, previous: Status, observed: JobFacts, now: float) -> Status:
    completed = complete_facts(current, previous, observed, now)
    outcome = judge(current, previous, completed, now)
    return summarise(current, previous, completed, outcome, decide(current, completed, outcome, now, 1), now)


@dataclass
class SimulatedJob:
    """A job with one node of two ranks, and its last status. Times are in seconds since the ranks' first start."""

    job: Job = field(default_factory=restarting_job)
    status: Status = field(default_factory=Status)
    attempt: int = 1
    process: ProcessFacts = field(default_factory=lambda: ProcessFacts(ProcessState.RUNNING, started_at=T0))
    restart_request: str | None = None

    def observe(self, at: float, observed: NodeFacts) -> Status:
        # Each status is stored in the resource and read again, as after a restart of the operator.
        stored = read_status({"status": serialise_status(self.status)})
        observed_facts = replace(facts(replace(observed, process=self.process)), restart_request=self.restart_request)
        self.status = next_status(self.job, stored, observed_facts, START + at)
        return self.status

    def report_ready(self, at: float) -> Status:
        return self.observe(at, node(0, agent(0, AgentPhase.READY, reported_at=at)))

    def report_running(self, at: float, *ranks: RankFacts) -> Status:
        return self.observe(at, self._node(at, AgentPhase.RUNNING, ranks))

    def report_ended(self, at: float, *ranks: RankFacts) -> Status:
        return self.observe(at, self._node(at, AgentPhase.ENDED, ranks))

    def _node(self, at: float, phase: str, ranks: Sequence[RankFacts]) -> NodeFacts:
        current = agent(0, phase, ranks, reported_at=at)
        current = replace(current, report=replace(current.report, attempt=self.attempt))
        start = replace(command(CommandKind.START, nodes=1), attempt=self.attempt)
        return node(0, current, sent_command=start)


def rank_with_steps(
    number: int,
    started_at: float,
    first_step_at: float | None,
    last_step_at: float,
    steps: int,
    first_script_step: int | None = None,
) -> RankFacts:
    """Return a running rank that completed its first step at `first_step_at` and its last one at `last_step_at`.

    With `first_script_step` its script reports its own steps, from that step on.
    """
    running_rank = rank(
        number, number, step=steps, highest_step_at=None if first_step_at is None else START + last_step_at
    )
    return replace(
        running_rank,
        report=replace(running_rank.report, first_script_step=first_script_step),
        started_at=START + started_at,
        first_step_at=None if first_step_at is None else START + first_step_at,
    )


def after_exit(running_rank: RankFacts, at: float, signal: int | None = None, *, stopped: bool = False) -> RankFacts:
    """Return the same rank after it exited."""
    exit_code = 0 if signal is None else None
    end = exited_rank(running_rank.report.rank, at, exit_code=exit_code, signal=signal, stopped=stopped)
    report = replace(end.report, step=running_rank.report.step, first_script_step=running_rank.report.first_script_step)
    return replace(running_rank, report=report, ended_at=START + at)


def two_ranks(*arguments: object) -> tuple[RankFacts, RankFacts]:
    return rank_with_steps(0, *arguments), rank_with_steps(1, *arguments)  # type: ignore[arg-type]


def after_failure(ranks: tuple[RankFacts, RankFacts], at: float) -> tuple[RankFacts, RankFacts]:
    return after_exit(ranks[0], at, 9), after_exit(ranks[1], at + 0.5, 15, stopped=True)


def seconds_by_cause(status: Status) -> dict[str, float]:
    assert status.goodput is not None
    return {
        "Productive": status.goodput.productive_seconds,
        **{entry.cause: entry.seconds for entry in status.goodput.lost},
    }


def test_the_time_before_the_first_step_counts_as_start() -> None:
    simulated = SimulatedJob()
    simulated.report_ready(-4)
    simulated.report_running(1, *two_ranks(0, None, 0, 0))
    simulated.report_running(12, *two_ranks(0, 10, 12, 3))
    simulated.report_running(20, *two_ranks(0, 10, 20, 11))
    status = simulated.report_ended(21, *(after_exit(entry, 21) for entry in two_ranks(0, 10, 20, 11)))
    assert status.phase == "Succeeded"
    assert seconds_by_cause(status) == {"Productive": 11, "Start": 14}
    assert status.goodput is not None
    assert (status.goodput.ratio, status.goodput.total_seconds) == (0.44, 25)
    assert (status.goodput.device, status.goodput.productive_device_seconds) == ("rank", 22)


def test_the_time_since_the_last_step_is_counted_at_the_next_step() -> None:
    simulated = SimulatedJob()
    simulated.report_ready(0)
    simulated.report_running(5, *two_ranks(0, 1, 5, 5))
    assert seconds_by_cause(simulated.report_running(60, *two_ranks(0, 1, 8, 8))) == {"Productive": 7, "Start": 1}
    assert seconds_by_cause(simulated.report_running(90, *two_ranks(0, 1, 85, 9))) == {"Productive": 84, "Start": 1}


def after_failed_attempt(first_script_step: int | None, last_script_step: int | None) -> SimulatedJob:
    """Return a job whose first attempt made 10 steps, one a second, and hung for 4 s before it failed."""
    simulated = SimulatedJob()
    simulated.report_ready(0)
    first = two_ranks(0, 1, 10, last_script_step or 10, first_script_step)
    simulated.report_running(10.5, *first)
    simulated.report_ended(14, *after_failure(first, 14))
    simulated.report_ready(14.1)
    simulated.report_ready(14.2)
    simulated.attempt = 2
    return simulated


def test_a_failure_loses_the_time_from_the_last_step_to_the_first_step_of_the_next_attempt() -> None:
    simulated = after_failed_attempt(None, None)
    simulated.report_running(16, *two_ranks(15, 16, 16, 1))
    status = simulated.report_running(26, *two_ranks(15, 16, 26, 11))
    assert seconds_by_cause(status) == {"Productive": 19, "Start": 1, "Failure": 6}
    assert status.restarts is not None
    (record,) = status.restarts.history
    assert (record.script_step, record.steps_lost) == (None, None)


def test_steps_that_an_attempt_repeats_count_as_recomputation() -> None:
    # The script loads the checkpoint of step 6, reports step 6, and repeats steps 7 to 10.
    simulated = after_failed_attempt(0, 10)
    simulated.report_running(16, *two_ranks(15, None, 15.5, 6, 6))
    status = simulated.report_running(18, *two_ranks(15, 16, 18, 8, 6))
    assert seconds_by_cause(status) == {"Productive": 9, "Start": 1, "Failure": 6, "Recomputation": 2}
    status = simulated.report_running(28, *two_ranks(15, 16, 28, 18, 6))
    assert status.restarts is not None
    (record,) = status.restarts.history
    assert (record.script_step, record.steps_lost) == (10, 4)
    # Steps 7 to 10 are 4 of 12 steps between 16 s and 28 s: they took 4 s.
    assert seconds_by_cause(status) == {"Productive": 17, "Start": 1, "Failure": 6, "Recomputation": 4}


def test_a_late_observation_divides_the_time_into_recomputation_and_progress() -> None:
    simulated = after_failed_attempt(0, 10)
    status = simulated.report_running(28, *two_ranks(15, 16, 28, 18, 6))
    assert seconds_by_cause(status) == {"Productive": 17, "Start": 1, "Failure": 6, "Recomputation": 4}


def test_a_second_failure_counts_recomputation_up_to_the_highest_step() -> None:
    simulated = after_failed_attempt(0, 10)
    second = two_ranks(15, 16, 18, 8, 6)
    simulated.report_running(18, *second)
    simulated.report_ended(20, *after_failure(second, 20))
    simulated.report_ready(20.1)
    simulated.report_ready(25)
    simulated.attempt = 3
    simulated.report_running(26, *two_ranks(25, None, 25.5, 6, 6))
    status = simulated.report_running(36, *two_ranks(25, 26, 36, 16, 6))
    assert status.restarts is not None
    assert [(record.script_step, record.steps_lost) for record in status.restarts.history] == [(10, 4), (8, 2)]
    # Failure: 10 s to 16 s and 18 s to 26 s. Recomputation: 16 s to 18 s, and 4 of the 10 steps from 26 s to 36 s.
    assert seconds_by_cause(status) == {"Productive": 15, "Start": 1, "Failure": 14, "Recomputation": 6}


WITHOUT_STEPS = [
    # can_count, fails, expected
    (True, False, {"Productive": 29, "Start": 1}),
    (False, False, {"Productive": 29, "Start": 1}),
    (True, True, {"Productive": 0, "Start": 1, "Failure": 29}),
    (False, True, {"Productive": 29, "Start": 1}),
]


@pytest.mark.parametrize(("can_count", "fails", "expected"), WITHOUT_STEPS)
def test_an_attempt_without_steps(*, can_count: bool, fails: bool, expected: dict[str, float]) -> None:
    simulated = SimulatedJob(job(1, 2))
    simulated.report_ready(0)
    ranks = two_ranks(1, None, 0, 0)
    if not can_count:
        ranks = tuple(replace(entry, report=replace(entry.report, step=None)) for entry in ranks)  # type: ignore[assignment]
    assert seconds_by_cause(simulated.report_running(20, *ranks)) == {"Productive": 0, "Start": 1}
    status = simulated.report_ended(
        30, *(after_failure(ranks, 30) if fails else (after_exit(entry, 30) for entry in ranks))
    )
    assert status.phase == ("Failed" if fails else "Succeeded")
    assert seconds_by_cause(status) == expected


def test_the_time_until_hanging_ranks_are_stopped_counts_as_hang() -> None:
    policy = FailurePolicy(max_restarts=3, hang_timeout_seconds=60)
    simulated = SimulatedJob(job(1, 2))
    simulated.job = with_spec(simulated.job, failure_policy=policy)
    simulated.report_ready(0)
    ranks = tuple(replace(entry, last_step_at=START + 10) for entry in two_ranks(0, 1, 10, 10))
    simulated.report_running(11, *ranks)
    assert simulated.report_running(71, *ranks).phase == "Stopping"
    simulated.report_ended(73, *(after_exit(entry, 72, 15, stopped=True) for entry in ranks))
    simulated.report_ready(73.1)
    assert seconds_by_cause(simulated.report_ready(74)) == {"Productive": 9, "Start": 1, "Hang": 60, "Failure": 4}


def test_a_requested_restart_of_hanging_ranks_counts_as_a_hang_until_the_request() -> None:
    simulated = SimulatedJob()
    simulated.report_ready(0)
    ranks = tuple(replace(entry, last_step_at=START + 10) for entry in two_ranks(0, 1, 10, 10))
    simulated.report_running(11, *ranks)
    assert simulated.report_running(700, *ranks).hang is not None
    simulated.restart_request = "now"
    assert simulated.report_running(710, *ranks).phase == "Stopping"
    simulated.report_ended(712, *(after_exit(entry, 711, 15, stopped=True) for entry in ranks))
    assert seconds_by_cause(simulated.report_ready(713)) == {"Productive": 9, "Start": 4, "Hang": 700}


def test_suspended_time_does_not_count() -> None:
    simulated = SimulatedJob()
    simulated.report_ready(0)
    ranks = two_ranks(0, 1, 10, 10, 0)
    simulated.report_running(10, *ranks)
    original_job = simulated.job
    simulated.job = with_spec(original_job, suspend=True)
    simulated.report_running(11, *ranks)
    status = simulated.observe(500, missing_node(0))
    simulated.process = ProcessFacts(ProcessState.MISSING, replacement=0)
    status = simulated.observe(510, missing_node(0))
    assert seconds_by_cause(status) == {"Productive": 10, "Start": 1}
    assert status.goodput is not None
    assert (status.goodput.at, status.goodput.devices, status.goodput.step) == (None, 0, 10)

    simulated.job = original_job
    simulated.observe(1000, missing_node(0))
    simulated.process = ProcessFacts(ProcessState.RUNNING, replacement=1, started_at=START + 1001)
    simulated.observe(1001, node(0))
    simulated.observe(1003, node(0))
    status = simulated.status
    assert status.goodput is not None
    assert status.goodput.recompute_until == 10


def test_waiting_for_a_node_counts_the_devices_that_the_job_already_has() -> None:
    original_job = job(3, 1)
    gpus = ProcessFacts(ProcessState.RUNNING, started_at=T0, devices=Devices("nvidia.com/gpu", 8))
    waiting = ProcessFacts(ProcessState.WAITING, devices=Devices("nvidia.com/gpu", 8))
    scheduled = [node(number, process=gpus) for number in range(3)]
    status = Status()
    observed = (
        (0, [replace(entry, process=waiting) for entry in scheduled]),
        (10, [scheduled[0], *(replace(entry, process=waiting) for entry in scheduled[1:])]),
        (30, [*scheduled[:2], replace(scheduled[2], process=waiting)]),
        (40, scheduled),
        (43, [node(number, agent(number, AgentPhase.READY, reported_at=43), gpus) for number in range(3)]),
    )
    for at, nodes in observed:
        status = next_status(original_job, status, facts(*nodes), START + at)
    assert status.goodput is not None
    assert status.goodput.device == "nvidia.com/gpu"
    assert status.goodput.lost == (
        LostTime(cause="Start", seconds=3, device_seconds=72),
        LostTime(cause="WaitingForNode", seconds=30, device_seconds=20 * 8 + 10 * 16),
    )
    assert (status.goodput.ratio, status.goodput.devices) == (0, 24)


def test_spares_lose_device_time_but_no_time_of_the_job() -> None:
    a_job = with_spec(job(1, 1), spares=1)
    gpus = ProcessFacts(ProcessState.RUNNING, started_at=T0, devices=Devices("nvidia.com/gpu", 8))
    unplaced = ProcessFacts(ProcessState.WAITING, problem=Problem("Unschedulable", "no room"))
    status = Status()
    observed = (
        (0, node(0, process=gpus), unplaced),
        (10, node(0, process=gpus), gpus),
        (40, node(0, agent(0, AgentPhase.READY, reported_at=40), gpus), gpus),
    )
    for at, first, spare in observed:
        status = next_status(a_job, status, facts(first, node(1, process=spare)), START + at)
    assert status.goodput is not None
    assert status.goodput.lost == (
        LostTime(cause="Start", seconds=40, device_seconds=40 * 8),
        LostTime(cause="Spare", seconds=0, device_seconds=30 * 8),
    )
    assert (status.goodput.total_seconds, status.goodput.devices, status.goodput.spare_devices) == (40, 8, 8)


def test_the_example_in_the_docs_is_correct() -> None:
    gpus = ProcessFacts(ProcessState.RUNNING, started_at=T0, devices=Devices("nvidia.com/gpu", 8))
    original_job = restarting_job()
    two_node_job = with_spec(original_job, nodes=2, procs_per_node=1)
    first, second = two_ranks(45, 70, 3670, 3600, 0)
    second_attempt = two_ranks(3675, 3678, 7378, 7200, 3500)
    waiting = replace(gpus, state=ProcessState.WAITING)
    observations = (
        (0, 0, AgentPhase.READY, None),
        (40, 0, AgentPhase.READY, ()),
        (3670, 1, AgentPhase.RUNNING, (first, second)),
        (3671, 1, AgentPhase.ENDED, after_failure((first, second), 3670.5)),
        (3671.1, 1, AgentPhase.ENDED, after_failure((first, second), 3670.5)),
        (7378, 2, AgentPhase.RUNNING, second_attempt),
        (7378, 2, AgentPhase.ENDED, tuple(after_exit(entry, 7378) for entry in second_attempt)),
    )
    status = Status()
    for at, attempt, phase, ranks in observations:
        nodes = []
        for number in range(2):
            agent_facts = agent(number, phase, () if not ranks else (ranks[number],), reported_at=at)
            agent_facts = replace(agent_facts, report=replace(agent_facts.report, attempt=attempt))
            is_waiting = ranks is None and number == 1
            nodes.append(node(number, None if is_waiting else agent_facts, waiting if is_waiting else gpus))
        status = next_status(two_node_job, status, facts(*nodes), START + at)
    text = (Path(__file__).parents[4] / "docs" / "goodput.md").read_text()
    expected = yaml.safe_load(text.partition("```yaml\n# status\ngoodput:")[2].partition("```")[0])
    serialised: Any = serialise_status(status)["goodput"]
    assert {name: serialised[name] for name in expected} == expected
    (line,) = format_goodput(status)
    assert line in text
    assert status.restarts is not None
    assert status.restarts.history[0].steps_lost == 100


def test_time_after_a_stop_request_does_not_count_as_failure() -> None:
    simulated = SimulatedJob(job(1, 2))
    simulated.report_ready(0)
    ranks = two_ranks(0, 1, 10, 10)
    simulated.report_running(10, *ranks)
    observed = simulated._node(12, AgentPhase.RUNNING, ranks)
    stored = simulated.status
    status = next_status(
        simulated.job, stored, facts(replace(observed, process=simulated.process), stop=ctrl_c_request(11)), START + 12
    )
    assert seconds_by_cause(status) == {"Productive": 11, "Start": 1}


def test_a_change_of_goodput_alone_is_not_significant() -> None:
    simulated = SimulatedJob()
    simulated.report_ready(0)
    ranks = two_ranks(0, 1, 10, 10)
    before = simulated.report_running(11, *ranks)
    assert simulated.report_running(14, *ranks) == before
    after = simulated.report_running(16, *two_ranks(0, 1, 12, 12))
    assert after.goodput != before.goodput
    assert not is_significant_change(before, after)


EDITED_FIELDS = [
    {"at": "yesterday"},
    {"at": "2999-01-01T00:00:00.000Z"},
    {"productive_seconds": 1e12, "lost": (LostTime(cause="Start", seconds=1e12, device_seconds=1e12),)},
    {"lost": (LostTime(cause="Bribes", seconds=5, device_seconds=5),)},
    {"step": 2**63 - 1, "recompute_until": 2**63 - 1},
    {"devices": 100_000_000},
]


@pytest.mark.parametrize("fields", EDITED_FIELDS)
def test_an_edited_goodput_stays_within_its_bounds(fields: dict[str, object]) -> None:
    simulated = SimulatedJob()
    simulated.report_ready(0)
    simulated.report_running(5, *two_ranks(0, 1, 5, 5, 0))
    assert simulated.status.goodput is not None
    simulated.status = simulated.status.model_copy(
        update={"goodput": simulated.status.goodput.model_copy(update=fields)}
    )
    for at in (10, 15, 5, 20):
        check_goodput(simulated.report_running(at, *two_ranks(0, 1, at, at, 0)).goodput)


def check_goodput(goodput: Goodput | None) -> None:
    """Check the rules for every goodput."""
    if goodput is None:
        return
    total = goodput.productive_seconds + sum(entry.seconds for entry in goodput.lost)
    assert goodput.total_seconds == pytest.approx(min(total, 1e12), abs=0.002)
    assert goodput.ratio is None or 0 <= goodput.ratio <= 1
    assert all(entry.seconds > 0 and entry.device_seconds >= 0 for entry in goodput.lost)
    causes = [entry.cause for entry in goodput.lost]
    assert set(causes) <= set(CAUSES)
    assert len(set(causes)) == len(causes)


def check_growth(before: Goodput | None, after: Goodput | None) -> None:
    """Check that no sum decreases."""
    check_goodput(after)
    if before is None:
        return
    assert after is not None
    lost = {entry.cause: entry for entry in after.lost}
    assert after.productive_seconds >= before.productive_seconds
    assert all(lost[entry.cause].seconds >= entry.seconds for entry in before.lost)
    assert all(lost[entry.cause].device_seconds >= entry.device_seconds for entry in before.lost)
    assert (after.step or 0) >= (before.step or 0)


ANY_TIME = st.one_of(st.none(), st.floats(-1e9, 1e9), st.integers(-3, 40).map(float))
ANY_STEP = st.one_of(st.none(), st.integers(0, 2**63 - 1), st.integers(0, 30))


@st.composite
def any_rank(draw: st.DrawFn, number: int) -> RankFacts:
    running = rank(number, number, step=draw(ANY_STEP))
    result = replace(
        running,
        report=replace(running.report, first_script_step=draw(ANY_STEP)),
        started_at=None if (at := draw(ANY_TIME)) is None else START + at,
        highest_step_at=None if (at := draw(ANY_TIME)) is None else START + at,
        first_step_at=None if (at := draw(ANY_TIME)) is None else START + at,
    )
    if draw(st.booleans()):
        return result
    return after_exit(
        result, draw(st.floats(-10, 1e6)), draw(st.sampled_from((None, 9, 15))), stopped=draw(st.booleans())
    )


@st.composite
def any_node(draw: st.DrawFn) -> NodeFacts:
    state = draw(st.sampled_from(ProcessState))
    process = ProcessFacts(
        state,
        draw(st.integers(0, 2)),
        scheduled_at=draw(st.sampled_from((None, T0))),
        devices=draw(st.sampled_from((None, Devices("nvidia.com/gpu", 8), Devices("amd.com/gpu", 9999)))),
    )
    phase = draw(st.sampled_from(AgentPhase.ALL))
    agent_facts = agent(0, phase, [draw(any_rank(number)) for number in range(draw(st.integers(0, 2)))], reported_at=5)
    report = replace(agent_facts.report, attempt=draw(st.integers(0, 3)), replacement=process.replacement)
    return node(0, draw(st.sampled_from((None, replace(agent_facts, report=report)))), process)


@settings(max_examples=choose_example_count(300, share=12), deadline=None)
@given(
    moments=st.lists(st.tuples(st.floats(-1e8, 1e8) | st.integers(0, 60), any_node(), st.booleans()), max_size=8),
    restarts=st.booleans(),
)
def test_the_sums_follow_their_rules_for_any_facts_and_clocks(
    moments: Sequence[tuple[float, NodeFacts, bool]], *, restarts: bool
) -> None:
    original_job = restarting_job() if restarts else job(1, 2)
    status = Status()
    for at, observed, suspend in moments:
        current = with_spec(original_job, suspend=suspend)
        after = next_status(current, status, JobFacts(T0, (observed,), 5.0), START + at)
        check_growth(status.goodput, after.goodput)
        status = read_status({"status": serialise_status(after)})
        assert status.goodput == after.goodput
