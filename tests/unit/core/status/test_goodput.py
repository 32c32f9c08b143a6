"""How the status accounts for a job's time."""

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
from muster.core.facts import JobFacts, NodeFacts, Problem, ProcessFacts, ProcessState, RankFacts
from muster.core.inference import infer
from muster.core.judge import judge
from muster.core.status.significant_change import is_significant_change
from muster.core.status.summarise import summarise
from muster_worker.contract.schema import AgentPhase, CommandKind
from support.searches import examples
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
)

POLICY = FailurePolicy(max_restarts=30)


def restarting_job() -> Job:
    plain = job(1, 2)
    return plain.model_copy(update={"spec": plain.spec.model_copy(update={"failure_policy": POLICY})})


def next_status(current: Job, previous: Status, observed: JobFacts, now: float) -> Status:
    inferred = infer(current, previous, observed, now)
    outcome = judge(current, previous, inferred, now)
    return summarise(current, previous, inferred, outcome, decide(current, inferred, outcome, now, 1), now)


@dataclass
class Story:
    """A job with one node of two ranks. Times are in seconds since the ranks' first start."""

    job: Job = field(default_factory=restarting_job)
    status: Status = field(default_factory=Status)
    attempt: int = 1
    process: ProcessFacts = field(default_factory=lambda: ProcessFacts(ProcessState.RUNNING, started_at=T0))
    restart_request: str | None = None

    def observe(self, at: float, observed: NodeFacts) -> Status:
        # Every status goes through the resource, as after a restart of the operator.
        stored = read_status({"status": serialise_status(self.status)})
        observed_facts = replace(facts(replace(observed, process=self.process)), restart_request=self.restart_request)
        self.status = next_status(self.job, stored, observed_facts, START + at)
        return self.status

    def ready(self, at: float) -> Status:
        return self.observe(at, node(0, agent(0, AgentPhase.READY, heard=at)))

    def run(self, at: float, *ranks: RankFacts) -> Status:
        return self.observe(at, self._node(at, AgentPhase.RUNNING, ranks))

    def end(self, at: float, *ranks: RankFacts) -> Status:
        return self.observe(at, self._node(at, AgentPhase.ENDED, ranks))

    def _node(self, at: float, phase: str, ranks: Sequence[RankFacts]) -> NodeFacts:
        current = agent(0, phase, ranks, heard=at)
        current = replace(current, report=replace(current.report, attempt=self.attempt))
        start = replace(command(CommandKind.START, nodes=1), attempt=self.attempt)
        return node(0, current, sent_command=start)


def stepping(
    number: int, since: float, first: float | None, last: float, steps: int, begin: int | None = None
) -> RankFacts:
    """Return a running rank that ended its first step at `first` and its last one at `last`.

    With `begin` its script reports its own steps, from `begin` on.
    """
    plain = rank(number, number, step=steps, highest_step_at=None if first is None else START + last)
    return replace(
        plain,
        report=replace(plain.report, first_script_step=begin),
        started_at=START + since,
        first_step_at=None if first is None else START + first,
    )


def over(running: RankFacts, at: float, signal: int | None = None, *, stopped: bool = False) -> RankFacts:
    """Return the same rank after its end."""
    exit_code = 0 if signal is None else None
    end = exited_rank(running.report.rank, at, exit_code=exit_code, signal=signal, stopped=stopped)
    report = replace(end.report, step=running.report.step, first_script_step=running.report.first_script_step)
    return replace(running, report=report, ended_at=START + at)


def both(*arguments: object) -> tuple[RankFacts, RankFacts]:
    return stepping(0, *arguments), stepping(1, *arguments)  # type: ignore[arg-type]


def failed(ranks: tuple[RankFacts, RankFacts], at: float) -> tuple[RankFacts, RankFacts]:
    return over(ranks[0], at, 9), over(ranks[1], at + 0.5, 15, stopped=True)


def seconds(status: Status) -> dict[str, float]:
    assert status.goodput is not None
    return {
        "Productive": status.goodput.productive_seconds,
        **{entry.cause: entry.seconds for entry in status.goodput.lost},
    }


def test_time_before_the_first_step_is_lost_to_the_start() -> None:
    story = Story()
    story.ready(-4)
    story.run(1, *both(0, None, 0, 0))
    story.run(12, *both(0, 10, 12, 3))
    story.run(20, *both(0, 10, 20, 11))
    status = story.end(21, *(over(entry, 21) for entry in both(0, 10, 20, 11)))
    assert status.phase == "Succeeded"
    assert seconds(status) == {"Productive": 11, "Start": 14}
    assert status.goodput is not None
    assert (status.goodput.ratio, status.goodput.total_seconds) == (0.44, 25)
    assert (status.goodput.device, status.goodput.productive_device_seconds) == ("rank", 22)


def test_the_time_since_the_last_step_waits_for_the_next_one() -> None:
    story = Story()
    story.ready(0)
    story.run(5, *both(0, 1, 5, 5))
    assert seconds(story.run(60, *both(0, 1, 8, 8))) == {"Productive": 7, "Start": 1}
    assert seconds(story.run(90, *both(0, 1, 85, 9))) == {"Productive": 84, "Start": 1}


def restarted(begin: int | None, reached: int | None) -> Story:
    """Return a job whose first attempt made 10 steps, one a second, and hung for 4 s before it failed."""
    story = Story()
    story.ready(0)
    first = both(0, 1, 10, reached or 10, begin)
    story.run(10.5, *first)
    story.end(14, *failed(first, 14))
    story.ready(14.1)
    story.ready(14.2)
    story.attempt = 2
    return story


def test_a_failure_costs_the_time_from_the_last_step_to_the_next_attempts_first() -> None:
    story = restarted(None, None)
    story.run(16, *both(15, 16, 16, 1))
    status = story.run(26, *both(15, 16, 26, 11))
    assert seconds(status) == {"Productive": 19, "Start": 1, "Failure": 6}
    assert status.restarts is not None
    (record,) = status.restarts.history
    assert (record.script_step, record.steps_lost) == (None, None)


def test_steps_that_an_earlier_attempt_had_made_are_lost() -> None:
    # The script loads the checkpoint of step 6 and reports that: it makes steps 7 to 10 again.
    story = restarted(0, 10)
    story.run(16, *both(15, None, 15.5, 6, 6))
    status = story.run(18, *both(15, 16, 18, 8, 6))
    assert seconds(status) == {"Productive": 9, "Start": 1, "Failure": 6, "Recomputation": 2}
    status = story.run(28, *both(15, 16, 28, 18, 6))
    assert status.restarts is not None
    (record,) = status.restarts.history
    assert (record.script_step, record.steps_lost) == (10, 4)
    # Steps 7 to 10 of 12 took from 16 to 20.
    assert seconds(status) == {"Productive": 17, "Start": 1, "Failure": 6, "Recomputation": 4}


def test_an_operator_that_was_away_finds_when_the_attempt_had_caught_up() -> None:
    story = restarted(0, 10)
    status = story.run(28, *both(15, 16, 28, 18, 6))
    assert seconds(status) == {"Productive": 17, "Start": 1, "Failure": 6, "Recomputation": 4}


def test_a_second_failure_keeps_the_furthest_step() -> None:
    story = restarted(0, 10)
    second = both(15, 16, 18, 8, 6)
    story.run(18, *second)
    story.end(20, *failed(second, 20))
    story.ready(20.1)
    story.ready(25)
    story.attempt = 3
    story.run(26, *both(25, None, 25.5, 6, 6))
    status = story.run(36, *both(25, 26, 36, 16, 6))
    assert status.restarts is not None
    assert [(record.script_step, record.steps_lost) for record in status.restarts.history] == [(10, 4), (8, 2)]
    # Failure: 10 to 16 and 18 to 26. Recomputation: 16 to 18 and, of 26 to 36, 4 of 10 steps.
    assert seconds(status) == {"Productive": 15, "Start": 1, "Failure": 14, "Recomputation": 6}


WITHOUT_STEPS = [
    # steps can be counted, the attempt fails, seconds
    (True, False, {"Productive": 29, "Start": 1}),
    (False, False, {"Productive": 29, "Start": 1}),
    (True, True, {"Productive": 0, "Start": 1, "Failure": 29}),
    (False, True, {"Productive": 29, "Start": 1}),
]


@pytest.mark.parametrize(("can_count", "fails", "expected"), WITHOUT_STEPS)
def test_an_attempt_without_steps(*, can_count: bool, fails: bool, expected: dict[str, float]) -> None:
    story = Story(job(1, 2))
    story.ready(0)
    ranks = both(1, None, 0, 0)
    if not can_count:
        ranks = tuple(replace(entry, report=replace(entry.report, step=None)) for entry in ranks)  # type: ignore[assignment]
    assert seconds(story.run(20, *ranks)) == {"Productive": 0, "Start": 1}
    status = story.end(30, *(failed(ranks, 30) if fails else (over(entry, 30) for entry in ranks)))
    assert status.phase == ("Failed" if fails else "Succeeded")
    assert seconds(status) == expected


def test_the_time_until_hanging_ranks_are_stopped_is_lost_to_the_hang() -> None:
    policy = FailurePolicy(max_restarts=3, hang_timeout_seconds=60)
    story = Story(job(1, 2))
    story.job = story.job.model_copy(update={"spec": story.job.spec.model_copy(update={"failure_policy": policy})})
    story.ready(0)
    ranks = tuple(replace(entry, last_step_at=START + 10) for entry in both(0, 1, 10, 10))
    story.run(11, *ranks)
    assert story.run(71, *ranks).phase == "Stopping"
    story.end(73, *(over(entry, 72, 15, stopped=True) for entry in ranks))
    story.ready(73.1)
    assert seconds(story.ready(74)) == {"Productive": 9, "Start": 1, "Hang": 60, "Failure": 4}


def test_a_requested_restart_of_hanging_ranks_counts_as_a_hang_until_the_request() -> None:
    story = Story()
    story.ready(0)
    ranks = tuple(replace(entry, last_step_at=START + 10) for entry in both(0, 1, 10, 10))
    story.run(11, *ranks)
    assert story.run(700, *ranks).hang is not None
    story.restart_request = "now"
    assert story.run(710, *ranks).phase == "Stopping"
    story.end(712, *(over(entry, 711, 15, stopped=True) for entry in ranks))
    assert seconds(story.ready(713)) == {"Productive": 9, "Start": 4, "Hang": 700}


def test_suspended_time_does_not_count() -> None:
    story = Story()
    story.ready(0)
    ranks = both(0, 1, 10, 10, 0)
    story.run(10, *ranks)
    plain = story.job
    story.job = plain.model_copy(update={"spec": plain.spec.model_copy(update={"suspend": True})})
    story.run(11, *ranks)
    status = story.observe(500, missing_node(0))
    story.process = ProcessFacts(ProcessState.MISSING, replacement=0)
    status = story.observe(510, missing_node(0))
    assert seconds(status) == {"Productive": 10, "Start": 1}
    assert status.goodput is not None
    assert (status.goodput.at, status.goodput.devices, status.goodput.step) == (None, 0, 10)

    story.job = plain
    story.observe(1000, missing_node(0))
    story.process = ProcessFacts(ProcessState.RUNNING, replacement=1, started_at=START + 1001)
    story.observe(1001, node(0))
    story.observe(1003, node(0))
    status = story.status
    assert status.goodput is not None
    assert status.goodput.recompute_until == 10


def test_waiting_for_a_node_costs_the_devices_that_the_job_holds() -> None:
    plain = job(3, 1)
    gpus = ProcessFacts(ProcessState.RUNNING, started_at=T0, devices=Devices("nvidia.com/gpu", 8))
    waiting = ProcessFacts(ProcessState.WAITING, devices=Devices("nvidia.com/gpu", 8))
    held = [node(number, process=gpus) for number in range(3)]
    status = Status()
    observed = (
        (0, [replace(entry, process=waiting) for entry in held]),
        (10, [held[0], *(replace(entry, process=waiting) for entry in held[1:])]),
        (30, [*held[:2], replace(held[2], process=waiting)]),
        (40, held),
        (43, [node(number, agent(number, AgentPhase.READY, heard=43), gpus) for number in range(3)]),
    )
    for at, nodes in observed:
        status = next_status(plain, status, facts(*nodes), START + at)
    assert status.goodput is not None
    assert status.goodput.device == "nvidia.com/gpu"
    assert status.goodput.lost == (
        LostTime(cause="Start", seconds=3, device_seconds=72),
        LostTime(cause="WaitingForNode", seconds=30, device_seconds=20 * 8 + 10 * 16),
    )
    assert (status.goodput.ratio, status.goodput.devices) == (0, 24)


def test_spares_cost_their_devices_and_no_time() -> None:
    plain = job(1, 1)
    asked = plain.model_copy(update={"spec": plain.spec.model_copy(update={"spares": 1})})
    gpus = ProcessFacts(ProcessState.RUNNING, started_at=T0, devices=Devices("nvidia.com/gpu", 8))
    unplaced = ProcessFacts(ProcessState.WAITING, problem=Problem("Unschedulable", "no room"))
    status = Status()
    observed = (
        (0, node(0, process=gpus), unplaced),
        (10, node(0, process=gpus), gpus),
        (40, node(0, agent(0, AgentPhase.READY, heard=40), gpus), gpus),
    )
    for at, first, spare in observed:
        status = next_status(asked, status, facts(first, node(1, process=spare)), START + at)
    assert status.goodput is not None
    assert status.goodput.lost == (
        LostTime(cause="Start", seconds=40, device_seconds=40 * 8),
        LostTime(cause="Spare", seconds=0, device_seconds=30 * 8),
    )
    assert (status.goodput.total_seconds, status.goodput.devices, status.goodput.spare_devices) == (40, 8, 8)


def test_the_example_of_the_docs() -> None:
    gpus = ProcessFacts(ProcessState.RUNNING, started_at=T0, devices=Devices("nvidia.com/gpu", 8))
    plain = restarting_job()
    two = plain.model_copy(update={"spec": plain.spec.model_copy(update={"nodes": 2, "procs_per_node": 1})})
    first, second = both(45, 70, 3670, 3600, 0)
    again = both(3675, 3678, 7378, 7200, 3500)
    waiting = replace(gpus, state=ProcessState.WAITING)
    story = (
        (0, 0, AgentPhase.READY, None),
        (40, 0, AgentPhase.READY, ()),
        (3670, 1, AgentPhase.RUNNING, (first, second)),
        (3671, 1, AgentPhase.ENDED, failed((first, second), 3670.5)),
        (3671.1, 1, AgentPhase.ENDED, failed((first, second), 3670.5)),
        (7378, 2, AgentPhase.RUNNING, again),
        (7378, 2, AgentPhase.ENDED, tuple(over(entry, 7378) for entry in again)),
    )
    status = Status()
    for at, attempt, phase, ranks in story:
        nodes = []
        for number in range(2):
            known = agent(number, phase, () if not ranks else (ranks[number],), heard=at)
            known = replace(known, report=replace(known.report, attempt=attempt))
            is_waiting = ranks is None and number == 1
            nodes.append(node(number, None if is_waiting else known, waiting if is_waiting else gpus))
        status = next_status(two, status, facts(*nodes), START + at)
    text = (Path(__file__).parents[4] / "docs" / "goodput.md").read_text()
    expected = yaml.safe_load(text.partition("```yaml\n# status\ngoodput:")[2].partition("```")[0])
    written: Any = serialise_status(status)["goodput"]
    assert {name: written[name] for name in expected} == expected
    (line,) = format_goodput(status)
    assert line in text
    assert status.restarts is not None
    assert status.restarts.history[0].steps_lost == 100


def test_a_stop_request_is_no_failure() -> None:
    story = Story(job(1, 2))
    story.ready(0)
    ranks = both(0, 1, 10, 10)
    story.run(10, *ranks)
    observed = story._node(12, AgentPhase.RUNNING, ranks)
    stored = story.status
    status = next_status(
        story.job, stored, facts(replace(observed, process=story.process), stop=ctrl_c_request(11)), START + 12
    )
    assert seconds(status) == {"Productive": 11, "Start": 1}


def test_passing_time_is_no_reason_to_write_the_status() -> None:
    story = Story()
    story.ready(0)
    ranks = both(0, 1, 10, 10)
    before = story.run(11, *ranks)
    assert story.run(14, *ranks) == before
    after = story.run(16, *both(0, 1, 12, 12))
    assert after.goodput != before.goodput
    assert not is_significant_change(before, after)


EDITED = [
    {"at": "yesterday"},
    {"at": "2999-01-01T00:00:00.000Z"},
    {"productive_seconds": 1e12, "lost": (LostTime(cause="Start", seconds=1e12, device_seconds=1e12),)},
    {"lost": (LostTime(cause="Bribes", seconds=5, device_seconds=5),)},
    {"step": 2**63 - 1, "recompute_until": 2**63 - 1},
    {"devices": 100_000_000},
]


@pytest.mark.parametrize("fields", EDITED)
def test_an_edited_goodput_stays_within_its_bounds(fields: dict[str, object]) -> None:
    story = Story()
    story.ready(0)
    story.run(5, *both(0, 1, 5, 5, 0))
    assert story.status.goodput is not None
    story.status = story.status.model_copy(update={"goodput": story.status.goodput.model_copy(update=fields)})
    for at in (10, 15, 5, 20):
        check(story.run(at, *both(0, 1, at, at, 0)).goodput)


def check(goodput: Goodput | None) -> None:
    """Check what holds for every goodput."""
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
    """Check that no sum shrinks."""
    check(after)
    if before is None:
        return
    assert after is not None
    lost = {entry.cause: entry for entry in after.lost}
    assert after.productive_seconds >= before.productive_seconds
    assert all(lost[entry.cause].seconds >= entry.seconds for entry in before.lost)
    assert all(lost[entry.cause].device_seconds >= entry.device_seconds for entry in before.lost)
    assert (after.step or 0) >= (before.step or 0)


MOMENT = st.one_of(st.none(), st.floats(-1e9, 1e9), st.integers(-3, 40).map(float))
REPORTED = st.one_of(st.none(), st.integers(0, 2**63 - 1), st.integers(0, 30))


@st.composite
def any_rank(draw: st.DrawFn, number: int) -> RankFacts:
    running = rank(number, number, step=draw(REPORTED))
    result = replace(
        running,
        report=replace(running.report, first_script_step=draw(REPORTED)),
        started_at=None if (at := draw(MOMENT)) is None else START + at,
        highest_step_at=None if (at := draw(MOMENT)) is None else START + at,
        first_step_at=None if (at := draw(MOMENT)) is None else START + at,
    )
    if draw(st.booleans()):
        return result
    return over(result, draw(st.floats(-10, 1e6)), draw(st.sampled_from((None, 9, 15))), stopped=draw(st.booleans()))


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
    known = agent(0, phase, [draw(any_rank(number)) for number in range(draw(st.integers(0, 2)))], heard=5)
    report = replace(known.report, attempt=draw(st.integers(0, 3)), replacement=process.replacement)
    return node(0, draw(st.sampled_from((None, replace(known, report=report)))), process)


@settings(max_examples=examples(300), deadline=None)
@given(
    moments=st.lists(st.tuples(st.floats(-1e8, 1e8) | st.integers(0, 60), any_node(), st.booleans()), max_size=8),
    restarts=st.booleans(),
)
def test_the_sums_are_sound_for_any_facts_and_clocks(
    moments: Sequence[tuple[float, NodeFacts, bool]], *, restarts: bool
) -> None:
    plain = restarting_job() if restarts else job(1, 2)
    status = Status()
    for at, observed, suspend in moments:
        current = plain.model_copy(update={"spec": plain.spec.model_copy(update={"suspend": suspend})})
        after = next_status(current, status, JobFacts(T0, (observed,), 5.0), START + at)
        check_growth(status.goodput, after.goodput)
        status = read_status({"status": serialise_status(after)})
        assert status.goodput == after.goodput
