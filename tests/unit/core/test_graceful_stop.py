"""A graceful stop: all ranks stop at the same call of `muster_worker.stopping()`, and the job is not Complete."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api.spec.failure_policy import FailurePolicy
from muster.api.spec.job import Job
from muster.api.status.restarts import RestartRecord, Restarts
from muster.api.status.status import Condition, Status
from muster.core.actions import SendCommand
from muster.core.decide import FAILURE_GRACE_SECONDS, decide
from muster.core.fact_completion import complete_facts
from muster.core.facts import JobFacts, NodeFacts, ProcessFacts, ProcessState
from muster.core.graceful_stop import UNKNOWN_STOP_CALL_NUMBER, add_stop_call_number, find_stop_call_number
from muster.core.judge import judge
from muster.core.outcome import Outcome, Verdict
from muster.core.problem import Problem
from muster_worker.contract.schema import AgentPhase, Command, CommandKind
from support.searches import choose_example_count
from unit.core.builders import (
    START,
    UID,
    agent,
    command,
    ctrl_c_request,
    exited_process,
    exited_rank,
    facts,
    finished_node,
    job,
    node,
    rank,
    running_node,
    stopped_node,
    with_sigterm,
    with_spec,
)

POD_PROCESS = ProcessFacts(ProcessState.RUNNING, started_at=START, grace_seconds=25.0)
SUSPENDED = Outcome(Verdict.SUSPENDED)
STARTED = Status(attempt=1, start_time="2025-11-21T04:05:05Z", observed_generation=3)


def make_job(*, suspend: bool = False, policy: FailurePolicy | None = None, deadline: int | None = None) -> Job:
    plain = job(deadline=deadline)
    changes = {"suspend": suspend, "failure_policy": policy}
    return with_spec(plain, **changes)


def with_stop_call_report(current: NodeFacts, call: int | None) -> NodeFacts:
    """Return the same node, whose agent reports this stop call."""
    assert current.agent is not None
    return replace(current, agent=replace(current.agent, report=replace(current.agent.report, stop_call=call)))


def with_pod_process(current: NodeFacts) -> NodeFacts:
    return replace(current, process=POD_PROCESS)


def running_facts(*calls: int | None) -> JobFacts:
    nodes = (running_node(number, rank(2 * number), rank(2 * number + 1)) for number in range(2))
    return facts(
        *(with_pod_process(with_stop_call_report(entry, call)) for entry, call in zip(nodes, calls, strict=True))
    )


def sent_commands(
    a_job: Job, current: JobFacts, now: float = START + 10, previous: Status = STARTED
) -> dict[int, Command]:
    """Return the commands that muster sends now, by node."""
    completed = complete_facts(a_job, previous, current, now)
    actions = decide(a_job, completed, judge(a_job, previous, completed, now), now, 1)
    return {number: entry.command for entry in actions if isinstance(entry, SendCommand) for number in entry.nodes}


@pytest.mark.parametrize(
    ("calls", "decision"),
    [
        ((None, None), UNKNOWN_STOP_CALL_NUMBER),
        ((7, None), UNKNOWN_STOP_CALL_NUMBER),
        ((0, 0), UNKNOWN_STOP_CALL_NUMBER),
        ((7, 5), 7),
        ((0, 5), 5),
        ((2**63 - 1, 5), 2**63 - 1),
    ],
)
def test_the_highest_stop_call_of_all_nodes_decides(calls: tuple[int | None, ...], decision: int) -> None:
    assert find_stop_call_number(running_facts(*calls), SUSPENDED) == decision


def test_the_decision_does_not_wait_for_a_node_without_ranks() -> None:
    exited_node = node(1, process=exited_process(3, 1))
    assert find_stop_call_number(facts(running_facts(7, None).nodes[0], exited_node), SUSPENDED) == 7
    for phase in (AgentPhase.READY, AgentPhase.UPLOADING):
        without_ranks = node(1, agent(1, phase))
        assert find_stop_call_number(facts(running_facts(7, None).nodes[0], without_ranks), SUSPENDED) == 7
    silent_node = node(1)
    with_silent_node = facts(running_facts(7, None).nodes[0], silent_node)
    assert find_stop_call_number(with_silent_node, SUSPENDED) == UNKNOWN_STOP_CALL_NUMBER
    ended_node = stopped_node(1, exited_rank(2, 1.0, 0, stopped=True))
    with_ended_node = facts(running_facts(7, None).nodes[0], with_stop_call_report(ended_node, 9))
    assert find_stop_call_number(with_ended_node, SUSPENDED) == 9


@pytest.mark.parametrize("cause", ["suspend", "deadline", "Ctrl-C"])
def test_healthy_ranks_get_stop_and_then_the_stop_call(cause: str) -> None:
    a_job = make_job(suspend=cause == "suspend", deadline=5 if cause == "deadline" else None)
    stop = ctrl_c_request(9, 25.0) if cause == "Ctrl-C" else None
    first = sent_commands(a_job, replace(running_facts(None, None), stop_request=stop))
    expected = Command(1, UID, 1, CommandKind.STOP, grace_seconds=25.0, is_graceful=True)
    assert first == {0: expected, 1: expected}
    reported = running_facts(7, 5)
    with_stop = [replace(entry, command=expected, command_sent_at=START + 10) for entry in reported.nodes]
    second = sent_commands(a_job, replace(facts(*with_stop), stop_request=stop))
    at_call = replace(expected, kind=CommandKind.STOP_AT, stop_call=7)
    assert second == {0: at_call, 1: at_call}
    with_decision = [replace(entry, command=at_call, command_sent_at=START + 10) for entry in reported.nodes]
    assert sent_commands(a_job, replace(facts(*with_decision), stop_request=stop)) == {}


def test_ranks_that_got_sigterm_get_no_stop_call() -> None:
    expected = Command(1, UID, 1, CommandKind.STOP, grace_seconds=25.0, is_graceful=True)
    assert {
        number: entry.kind for number, entry in sent_commands(make_job(suspend=True), running_facts(0, 5)).items()
    } == {0: CommandKind.STOP, 1: CommandKind.STOP_AT}
    assert sent_commands(make_job(suspend=True), running_facts(0, 0)) == {0: expected, 1: expected}


@pytest.mark.parametrize("policy", [None, FailurePolicy()])
def test_a_drained_node_gives_all_nodes_their_grace_period(policy: FailurePolicy | None) -> None:
    healthy, drained = running_facts(None, 5).nodes
    current = facts(healthy, with_sigterm(drained, 9))
    commands = sent_commands(make_job(policy=policy), current)
    expected = Command(1, UID, 1, CommandKind.STOP, grace_seconds=25.0, is_graceful=True)
    assert commands == {0: expected, 1: expected}
    reported = facts(with_stop_call_report(healthy, 8), with_sigterm(drained, 9))
    assert {entry.stop_call for entry in sent_commands(make_job(policy=policy), reported).values()} == {8}


@pytest.mark.parametrize(
    "sign",
    [
        ProcessFacts(ProcessState.RUNNING, is_terminating=True, deletion_requested_at=START + 9),
        ProcessFacts(ProcessState.RUNNING, disruption_announced_at=START + 9),
    ],
)
def test_a_deletion_or_its_announcement_stops_all_ranks_gracefully(sign: ProcessFacts) -> None:
    healthy, drained = running_facts(None, None).nodes
    evicted = replace(
        POD_PROCESS,
        is_terminating=sign.is_terminating,
        deletion_requested_at=sign.deletion_requested_at,
        disruption_announced_at=sign.disruption_announced_at,
        problem=Problem("Evicted", "it was evicted"),
    )
    commands = sent_commands(make_job(policy=FailurePolicy()), facts(healthy, replace(drained, process=evicted)))
    assert {(entry.kind, entry.is_graceful, entry.grace_seconds) for entry in commands.values()} == {
        ("Stop", True, 25.0)
    }
    missing = replace(evicted, state=ProcessState.MISSING)
    commands = sent_commands(make_job(policy=FailurePolicy()), facts(healthy, replace(drained, process=missing)))
    assert commands == {0: Command(1, UID, 1, CommandKind.STOP, grace_seconds=FAILURE_GRACE_SECONDS)}


@pytest.mark.parametrize("policy", [None, FailurePolicy(max_restarts=1)])
def test_the_stop_after_a_failed_rank_is_not_graceful(policy: FailurePolicy | None) -> None:
    failed = with_pod_process(running_node(0, exited_rank(0, 8, 1), rank(1)))
    commands = sent_commands(make_job(policy=policy), facts(failed, running_facts(None, 5).nodes[1]))
    expected = Command(1, UID, 1, CommandKind.STOP, grace_seconds=FAILURE_GRACE_SECONDS)
    assert commands == {0: expected, 1: expected}


def node_that_saved(number: int, at: float = 12.0) -> NodeFacts:
    """Return a node whose ranks saved a checkpoint and exited with 0 after the stop began."""
    ranks = (exited_rank(2 * number, at, 0, stopped=True), exited_rank(2 * number + 1, at, 0, stopped=True))
    return with_stop_call_report(with_pod_process(stopped_node(number, *ranks)), 7)


def judge_job(a_job: Job, previous: Status, job_facts: JobFacts, now: float = START + 20) -> Outcome:
    return judge(a_job, previous, complete_facts(a_job, previous, job_facts, now), now)


_CONDITION = Condition(
    type="Suspended", status="False", reason="Suspending", last_transition_time="2025-11-21T05:00:00Z"
)
SUSPENDING = STARTED.model_copy(update={"conditions": (_CONDITION,)})


def test_ranks_that_saved_before_a_suspension_have_not_completed_the_job() -> None:
    assert (
        judge_job(make_job(suspend=True), SUSPENDING, facts(node_that_saved(0), node_that_saved(1))).verdict
        is Verdict.SUSPENDED
    )


def test_ranks_that_saved_at_the_deadline_have_not_completed_the_job() -> None:
    outcome = judge_job(make_job(deadline=5), STARTED, facts(node_that_saved(0), node_that_saved(1)))
    assert (outcome.verdict, outcome.reason) == (Verdict.FAILED, "DeadlineExceeded")


@pytest.mark.parametrize(("policy", "expected"), [(None, Verdict.FAILED), (FailurePolicy(), Verdict.RESTARTING)])
def test_ranks_that_saved_on_a_drained_node_have_not_completed_the_job(
    policy: FailurePolicy | None, expected: Verdict
) -> None:
    outcome = judge_job(
        make_job(policy=policy), STARTED, facts(node_that_saved(0), with_sigterm(node_that_saved(1), 9, 9.5))
    )
    assert (outcome.verdict, outcome.reason) == (expected, "NodeStopped")
    assert outcome.failure is not None
    assert outcome.failure.first.node == 1
    if outcome.restart is not None:
        assert outcome.restart.counts_as == "Disruption"


def test_a_drain_is_the_cause_although_no_operator_ran() -> None:
    """The drained ranks saved and exited. The ranks of the other node failed because they lost their peers."""
    drained = with_sigterm(node_that_saved(1, 11), 9)
    outcome = judge_job(
        make_job(policy=FailurePolicy()),
        STARTED,
        facts(finished_node(0, exited_rank(0, 12, 1), exited_rank(1, 12, 1)), drained),
    )
    assert (outcome.verdict, outcome.reason) == (Verdict.RESTARTING, "NodeStopped")


def test_a_job_that_completed_before_the_stop_stays_complete() -> None:
    current = facts(
        finished_node(0, exited_rank(0, 8, 0), exited_rank(1, 8, 0)),
        finished_node(1, exited_rank(2, 8, 0), exited_rank(3, 8, 0)),
    )
    assert judge_job(make_job(suspend=True), STARTED, current).verdict is Verdict.SUCCEEDED


def test_the_next_attempt_has_no_stop_call() -> None:
    record = RestartRecord(
        at="2025-11-21T04:06:00Z", attempt=1, reason="NodeStopped", message="drained", counts_as="Disruption"
    )
    restarts = Restarts(total=1, failures=0, disruptions=1, replacement=0, is_pending=True, history=(record,))
    previous = Status(attempt=2, restarts=restarts, observed_generation=3)
    completed = complete_facts(
        make_job(policy=FailurePolicy()), previous, facts(node_that_saved(0), node_that_saved(1)), START + 20
    )
    assert [entry.is_ready for entry in completed.nodes] == [True, True]
    assert [entry.agent and entry.agent.report.stop_call for entry in completed.nodes] == [None, None]


@dataclass
class ModelRank:
    """A model of `rank/stopping.py`. `calls` is the number of calls that the rank has begun."""

    calls: int
    is_waiting: bool = False
    stopped_at: int | None = None

    def step(self, node: "ModelNode") -> None:
        """Finish a step and call `stopping`, or continue to wait in that call."""
        if self.stopped_at is not None:
            return
        self.calls += not self.is_waiting
        self.is_waiting = node.own_call is not None and node.decision is None
        if node.decision is not None and self.calls >= node.decision:
            self.stopped_at = self.calls


@dataclass
class ModelNode:
    """A model of `rank_group/graceful_stop.py`, and the last command to the node."""

    ranks: list[ModelRank]
    own_call: int | None = None
    decision: int | None = None
    command: Command | None = None
    reported: int | None = None

    def execute_command(self) -> None:
        if self.command is None:
            return
        if self.own_call is None:
            self.own_call = max(member.calls for member in self.ranks) + 1
        if self.command.kind == CommandKind.STOP_AT and self.decision is None:
            self.decision = self.command.stop_call


EVENT_NAMES = ("step", "step", "step", "decide", "execute command", "report", "another leader")


@settings(max_examples=choose_example_count(300, share=6), deadline=None)
@given(st.data())
def test_all_ranks_stop_at_the_same_call_in_any_order_of_events(data: st.DataObject) -> None:
    call_counts = data.draw(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=3))
    nodes = [ModelNode([ModelRank(calls) for calls in of_node]) for of_node in call_counts]
    events = st.tuples(st.sampled_from(EVENT_NAMES), st.integers(0, len(nodes) - 1), st.integers(0, 1))
    for event, number, member in data.draw(st.lists(events, max_size=60)):
        apply_event(event, nodes, number, member)
    for event in ("decide", "execute command", "report", "decide", "execute command", *["step"] * 99):
        for number in range(len(nodes)):
            apply_event(event, nodes, number, 0)
            apply_event(event, nodes, number, 1)
    stops = {member.stopped_at for entry in nodes for member in entry.ranks}
    assert len(stops) == 1
    assert None not in stops


def apply_event(event: str, nodes: list[ModelNode], number: int, member: int) -> None:
    current = nodes[number]
    if event == "step":
        current.ranks[member].step(current)
    elif event == "report":
        current.reported = current.own_call
    elif event == "execute command":
        current.execute_command()
    elif event == "another leader":  # It has neither the reports nor the commands.
        for other in nodes:
            other.reported = other.command = None
    else:
        agents = [
            with_stop_call_report(node(n, agent(n, AgentPhase.RUNNING)), other.reported)
            for n, other in enumerate(nodes)
        ]
        current.command = add_stop_call_number(
            command(CommandKind.STOP, 25.0), agents[number], find_stop_call_number(facts(*agents), SUSPENDED)
        )
