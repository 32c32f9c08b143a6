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
from muster.core.facts import JobFacts, NodeFacts, Problem, ProcessFacts, ProcessState
from muster.core.graceful_stop import UNDECIDED_STOP_CALL, add_stop_call, find_stop_call
from muster.core.inference import infer
from muster.core.judge import judge
from muster.core.outcome import Outcome, Verdict
from muster_worker.contract.schema import AgentPhase, Command, CommandKind
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
)

POD = ProcessFacts(ProcessState.RUNNING, started_at=START, grace_seconds=25.0)
SUSPENDED = Outcome(Verdict.SUSPENDED)
STARTED = Status(attempt=1, start_time="2025-11-21T04:05:05Z", observed_generation=3)


def spec(*, suspend: bool = False, policy: FailurePolicy | None = None, deadline: int | None = None) -> Job:
    plain = job(deadline=deadline)
    changes = {"suspend": suspend, "failure_policy": policy}
    return plain.model_copy(update={"spec": plain.spec.model_copy(update=changes)})


def with_call(current: NodeFacts, call: int | None) -> NodeFacts:
    """Return the same node, whose agent reports this stop call."""
    assert current.agent is not None
    return replace(current, agent=replace(current.agent, report=replace(current.agent.report, stop_call=call)))


def in_pod(current: NodeFacts) -> NodeFacts:
    return replace(current, process=POD)


def runs(*calls: int | None) -> JobFacts:
    nodes = (running_node(number, rank(2 * number), rank(2 * number + 1)) for number in range(2))
    return facts(*(in_pod(with_call(one, call)) for one, call in zip(nodes, calls, strict=True)))


def sent(a_job: Job, current: JobFacts, now: float = START + 10, previous: Status = STARTED) -> dict[int, Command]:
    """Return the commands that the job needs, by node."""
    complete = infer(a_job, previous, current, now)
    actions = decide(a_job, complete, judge(a_job, previous, complete, now), now, 1)
    return {number: one.command for one in actions if isinstance(one, SendCommand) for number in one.nodes}


@pytest.mark.parametrize(
    ("calls", "decision"),
    [
        ((None, None), UNDECIDED_STOP_CALL),
        ((7, None), UNDECIDED_STOP_CALL),
        ((0, 0), UNDECIDED_STOP_CALL),
        ((7, 5), 7),
        ((0, 5), 5),
        ((2**63 - 1, 5), 2**63 - 1),
    ],
)
def test_the_highest_stop_call_of_all_nodes_decides(calls: tuple[int | None, ...], decision: int) -> None:
    assert find_stop_call(runs(*calls), SUSPENDED) == decision


def test_a_node_without_ranks_is_not_waited_for() -> None:
    gone = node(1, process=exited_process(3, 1))
    assert find_stop_call(facts(runs(7, None).nodes[0], gone), SUSPENDED) == 7
    for phase in (AgentPhase.READY, AgentPhase.UPLOADING):
        without_ranks = node(1, agent(1, phase))
        assert find_stop_call(facts(runs(7, None).nodes[0], without_ranks), SUSPENDED) == 7
    unheard = node(1)
    assert find_stop_call(facts(runs(7, None).nodes[0], unheard), SUSPENDED) == UNDECIDED
    ended_node = stopped_node(1, exited_rank(2, 1.0, 0, stopped=True))
    assert find_stop_call(facts(runs(7, None).nodes[0], with_call(ended_node, 9)), SUSPENDED) == 9


@pytest.mark.parametrize("cause", ["suspend", "deadline", "Ctrl-C"])
def test_healthy_ranks_are_stopped_gracefully_and_then_at_one_call(cause: str) -> None:
    a_job = spec(suspend=cause == "suspend", deadline=5 if cause == "deadline" else None)
    stop = ctrl_c_request(9, 25.0) if cause == "Ctrl-C" else None
    first = sent(a_job, replace(runs(None, None), stop_request=stop))
    expected = Command(1, UID, 1, CommandKind.STOP, grace_seconds=25.0, is_graceful=True)
    assert first == {0: expected, 1: expected}
    waiting = runs(7, 5)
    received = [replace(one, command=expected, command_sent_at=START + 10) for one in waiting.nodes]
    then = sent(a_job, replace(facts(*received), stop_request=stop))
    at_call = replace(expected, kind=CommandKind.STOP_AT, stop_call=7)
    assert then == {0: at_call, 1: at_call}
    told = [replace(one, command=at_call, command_sent_at=START + 10) for one in waiting.nodes]
    assert sent(a_job, replace(facts(*told), stop_request=stop)) == {}


def test_ranks_that_got_sigterm_get_no_stop_call() -> None:
    expected = Command(1, UID, 1, CommandKind.STOP, grace_seconds=25.0, is_graceful=True)
    assert {number: one.kind for number, one in sent(spec(suspend=True), runs(0, 5)).items()} == {
        0: CommandKind.STOP,
        1: CommandKind.STOP_AT,
    }
    assert sent(spec(suspend=True), runs(0, 0)) == {0: expected, 1: expected}


@pytest.mark.parametrize("policy", [None, FailurePolicy()])
def test_a_drained_node_gives_all_nodes_their_grace_period(policy: FailurePolicy | None) -> None:
    healthy, drained = runs(None, 5).nodes
    current = facts(healthy, with_sigterm(drained, 9))
    commands = sent(spec(policy=policy), current)
    expected = Command(1, UID, 1, CommandKind.STOP, grace_seconds=25.0, is_graceful=True)
    assert commands == {0: expected, 1: expected}
    both = facts(with_call(healthy, 8), with_sigterm(drained, 9))
    assert {one.stop_call for one in sent(spec(policy=policy), both).values()} == {8}


def test_a_deleted_pod_is_drained_before_it_gets_sigterm() -> None:
    healthy, drained = runs(None, None).nodes
    evicted = replace(
        POD, is_terminating=True, deletion_requested_at=START + 9, problem=Problem("Evicted", "it was evicted")
    )
    commands = sent(spec(policy=FailurePolicy()), facts(healthy, replace(drained, process=evicted)))
    assert {(one.kind, one.is_graceful, one.grace_seconds) for one in commands.values()} == {("Stop", True, 25.0)}
    gone = replace(evicted, state=ProcessState.MISSING)
    commands = sent(spec(policy=FailurePolicy()), facts(healthy, replace(drained, process=gone)))
    assert commands == {0: Command(1, UID, 1, CommandKind.STOP, grace_seconds=FAILURE_GRACE_SECONDS)}


@pytest.mark.parametrize("policy", [None, FailurePolicy(max_restarts=1)])
def test_after_a_failed_rank_nobody_waits(policy: FailurePolicy | None) -> None:
    failed = in_pod(running_node(0, exited_rank(0, 8, 1), rank(1)))
    commands = sent(spec(policy=policy), facts(failed, runs(None, 5).nodes[1]))
    expected = Command(1, UID, 1, CommandKind.STOP, grace_seconds=FAILURE_GRACE_SECONDS)
    assert commands == {0: expected, 1: expected}


def saved(number: int, at: float = 12.0) -> NodeFacts:
    """Return a node whose ranks saved a checkpoint and exited with 0 after the stop began."""
    ranks = (exited_rank(2 * number, at, 0, stopped=True), exited_rank(2 * number + 1, at, 0, stopped=True))
    return with_call(in_pod(stopped_node(number, *ranks)), 7)


def verdict(a_job: Job, previous: Status, current: JobFacts, now: float = START + 20) -> Outcome:
    return judge(a_job, previous, infer(a_job, previous, current, now), now)


_CONDITION = Condition(
    type="Suspended", status="False", reason="Suspending", last_transition_time="2025-11-21T05:00:00Z"
)
SUSPENDING = STARTED.model_copy(update={"conditions": (_CONDITION,)})


def test_ranks_that_saved_before_a_suspension_have_not_completed_the_job() -> None:
    assert verdict(spec(suspend=True), SUSPENDING, facts(saved(0), saved(1))).verdict is Verdict.SUSPENDED


def test_ranks_that_saved_before_the_deadline_s_end_have_not_completed_the_job() -> None:
    outcome = verdict(spec(deadline=5), STARTED, facts(saved(0), saved(1)))
    assert (outcome.verdict, outcome.reason) == (Verdict.FAILED, "DeadlineExceeded")


@pytest.mark.parametrize(("policy", "expected"), [(None, Verdict.FAILED), (FailurePolicy(), Verdict.RESTARTING)])
def test_ranks_that_saved_on_a_drained_node_have_not_completed_the_job(
    policy: FailurePolicy | None, expected: Verdict
) -> None:
    outcome = verdict(spec(policy=policy), STARTED, facts(saved(0), with_sigterm(saved(1), 9, 9.5)))
    assert (outcome.verdict, outcome.reason) == (expected, "NodeStopped")
    assert outcome.failure is not None
    assert outcome.failure.first.node == 1
    if outcome.restart is not None:
        assert outcome.restart.counts_as == "Disruption"


def test_a_pod_that_was_drained_while_the_operator_was_away() -> None:
    """Its ranks saved and left; the other node's ranks lost them as their peer."""
    alone = with_sigterm(saved(1, 11), 9)
    outcome = verdict(
        spec(policy=FailurePolicy()),
        STARTED,
        facts(finished_node(0, exited_rank(0, 12, 1), exited_rank(1, 12, 1)), alone),
    )
    assert (outcome.verdict, outcome.reason) == (Verdict.RESTARTING, "NodeStopped")


def test_who_completed_the_training_before_the_stop_stays_complete() -> None:
    current = facts(
        finished_node(0, exited_rank(0, 8, 0), exited_rank(1, 8, 0)),
        finished_node(1, exited_rank(2, 8, 0), exited_rank(3, 8, 0)),
    )
    assert verdict(spec(suspend=True), STARTED, current).verdict is Verdict.SUCCEEDED


def test_the_next_attempt_has_no_stop_call() -> None:
    record = RestartRecord(
        at="2025-11-21T04:06:00Z", attempt=1, reason="NodeStopped", message="drained", counts_as="Disruption"
    )
    restarts = Restarts(total=1, failures=0, disruptions=1, replacement=0, is_pending=True, history=(record,))
    previous = Status(attempt=2, restarts=restarts, observed_generation=3)
    complete = infer(spec(policy=FailurePolicy()), previous, facts(saved(0), saved(1)), START + 20)
    assert [one.is_ready for one in complete.nodes] == [True, True]
    assert [one.agent and one.agent.report.stop_call for one in complete.nodes] == [None, None]


@dataclass
class ModelRank:
    """A rank, as in `rank/stopping.py`. `calls` are the calls that it has begun."""

    calls: int
    is_waiting: bool = False
    stopped_at: int | None = None

    def step(self, node: "ModelNode") -> None:
        """Finish a step and call `stopping`, or go on waiting in that call."""
        if self.stopped_at is not None:
            return
        self.calls += not self.is_waiting
        self.is_waiting = node.own_call is not None and node.decision is None
        if node.decision is not None and self.calls >= node.decision:
            self.stopped_at = self.calls


@dataclass
class ModelNode:
    """A node, as in `rank_group/graceful_stop.py`, and the last command to it."""

    ranks: list[ModelRank]
    own_call: int | None = None
    decision: int | None = None
    command: Command | None = None
    reported: int | None = None

    def obey(self) -> None:
        if self.command is None:
            return
        if self.own_call is None:
            self.own_call = max(member.calls for member in self.ranks) + 1
        if self.command.kind == CommandKind.STOP_AT and self.decision is None:
            self.decision = self.command.stop_call


EVENTS = ("step", "step", "step", "decide", "obey", "report", "another leader")


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_all_ranks_stop_at_the_same_call_in_any_order_of_events(data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=3))
    nodes = [ModelNode([ModelRank(calls) for calls in of_node]) for of_node in counts]
    places = st.tuples(st.sampled_from(EVENTS), st.integers(0, len(nodes) - 1), st.integers(0, 1))
    for event, number, member in data.draw(st.lists(places, max_size=60)):
        happen(event, nodes, number, member)
    for event in ("decide", "obey", "report", "decide", "obey", *["step"] * 99):
        for number in range(len(nodes)):
            happen(event, nodes, number, 0)
            happen(event, nodes, number, 1)
    stops = {member.stopped_at for one in nodes for member in one.ranks}
    assert len(stops) == 1
    assert None not in stops


def happen(event: str, nodes: list[ModelNode], number: int, member: int) -> None:
    one = nodes[number]
    if event == "step":
        one.ranks[member].step(one)
    elif event == "report":
        one.reported = one.own_call
    elif event == "obey":
        one.obey()
    elif event == "another leader":  # it knows neither the reports nor the commands
        for each in nodes:
            each.reported = each.command = None
    else:
        agents = [with_call(node(n, agent(n, AgentPhase.RUNNING)), each.reported) for n, each in enumerate(nodes)]
        one.command = add_stop_call(
            command(CommandKind.STOP, 25.0), agents[number], find_stop_call(facts(*agents), SUSPENDED)
        )
