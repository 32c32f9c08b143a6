"""The next actions, for each state of a job."""

import dataclasses
from collections.abc import Sequence
from dataclasses import replace

import pytest

from muster.api.status.status import Condition, Status
from muster.core.actions import Action, CreateNode, KillNode, RemoveNode, RemoveSurplusPod, SendCommand
from muster.core.decide import decide, find_requeue_time
from muster.core.facts import JobFacts, Problem, ProcessFacts, ProcessState, RankFacts
from muster.core.judge import judge
from muster_worker.contract.schema import AgentPhase, Command, CommandKind, Peer
from unit.core.builders import (
    START,
    T0,
    UID,
    agent,
    command,
    ctrl_c_request,
    exited_process,
    exited_rank,
    facts,
    finished_node,
    job,
    missing_node,
    node,
    rank,
    ready_node,
    running_node,
    running_process,
    stopped_node,
    with_sigterm,
)


def without_torch(number: int) -> RankFacts:
    started = rank(number)
    return replace(started, report=replace(started.report, no_step_reason="NoTorch"))


START_COMMAND = command(CommandKind.START)
STOP = Command(1, UID, 1, CommandKind.STOP, grace_seconds=2.0)
KILL = Command(1, UID, 1, CommandKind.KILL)
EXIT = Command(1, UID, 1, CommandKind.EXIT)
OVER = Status(
    conditions=(
        Condition(type="Failed", status="True", reason="RankFailed", last_transition_time="2025-11-21T04:05:00Z"),
    )
)
LEAVING = agent(1, AgentPhase.READY)
LEAVING = replace(LEAVING, report=replace(LEAVING.report, phase=AgentPhase.ENDED))
UNPLACED = ProcessFacts(ProcessState.WAITING, problem=Problem("Unschedulable", "none of 2 nodes has room"))
GOOD = (
    finished_node(0, exited_rank(0, 9, exit_code=0), exited_rank(1, 9, exit_code=0)),
    finished_node(1, exited_rank(2, 9, exit_code=0), exited_rank(3, 9, exit_code=0)),
)
BROKEN = (running_node(0, rank(0), rank(1)), running_node(1, exited_rank(2, 9.0, exit_code=1), rank(3)))


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    facts: JobFacts
    actions: Sequence[Action]
    now: float = 10.0
    startup: int = 900
    deadline: int | None = None
    previous: Status = Status()  # noqa: RUF009 - frozen


CASES = (
    Case("nothing is there", facts(missing_node(0), missing_node(1)), [CreateNode(0, 0), CreateNode(1, 0)]),
    Case("one is missing", facts(ready_node(0), missing_node(1)), [CreateNode(1, 0)]),
    Case("one has not reported", facts(ready_node(0), node(1)), []),
    Case("all are ready", facts(ready_node(0), ready_node(1)), [SendCommand((0, 1), START_COMMAND)]),
    Case(
        "all are told to start",
        facts(*(dataclasses.replace(ready_node(n), command=START_COMMAND) for n in (0, 1))),
        [],
    ),
    Case(
        "one was started by an operator before",
        facts(running_node(0), ready_node(1)),
        [SendCommand((1,), START_COMMAND)],
    ),
    Case("all run", facts(running_node(0, rank(0), rank(1)), running_node(1, rank(2), rank(3))), []),
    Case("one node is done", facts(GOOD[0], running_node(1, rank(2), rank(3))), []),
    Case("all are done", facts(*GOOD), [SendCommand((0, 1), EXIT)]),
    Case("all are done and told so", facts(*(dataclasses.replace(n, command=EXIT) for n in GOOD)), []),
    Case("a rank failed", facts(*BROKEN), [SendCommand((0, 1), STOP)]),
    Case("a rank failed, all are told", facts(*(dataclasses.replace(n, command=STOP) for n in BROKEN)), []),
    Case(
        "one has stopped, the other is at it",
        facts(dataclasses.replace(BROKEN[0], command=STOP), stopped_node(1, exited_rank(2, 9.0, exit_code=1))),
        [SendCommand((1,), EXIT)],
    ),
    Case(
        "Ctrl-C",
        facts(running_node(0, rank(0), rank(1)), running_node(1, rank(2), rank(3)), stop=ctrl_c_request(9)),
        [SendCommand((0, 1), dataclasses.replace(STOP, grace_seconds=10.0, is_graceful=True))],
    ),
    Case(
        "Ctrl-C twice",
        facts(*(dataclasses.replace(n, command=STOP) for n in BROKEN), stop=ctrl_c_request(9, grace=0)),
        [SendCommand((0, 1), KILL)],
    ),
    Case("Ctrl-C before anything is there", facts(missing_node(0), missing_node(1), stop=ctrl_c_request(-5)), []),
    Case(
        "Ctrl-C while agents start",
        facts(ready_node(0), node(1), stop=ctrl_c_request(-5)),
        [SendCommand((0, 1), EXIT)],
        now=-4,
    ),
    Case("the nodes take too long", facts(ready_node(0), node(1)), [SendCommand((0, 1), EXIT)], now=6, startup=10),
    Case("the nodes have time left", facts(ready_node(0), node(1)), [], now=4, startup=10),
    Case(
        "the job takes too long",
        facts(running_node(0, rank(0), rank(1)), running_node(1, rank(2), rank(3))),
        [SendCommand((0, 1), dataclasses.replace(STOP, grace_seconds=10.0, is_graceful=True))],
        deadline=15,
    ),
    Case(
        "an agent does not obey",
        facts(
            dataclasses.replace(BROKEN[0], command=STOP, command_sent_at=START + 9),
            stopped_node(1, exited_rank(2, 9, exit_code=1)),
        ),
        [KillNode(0, "its agent did not end within 10 s"), SendCommand((1,), EXIT)],
        now=21,
    ),
    Case(
        "an agent does not obey, and nobody noted when it was told",
        facts(dataclasses.replace(BROKEN[0], command=STOP), node(1, process=exited_process(9, exit_code=1))),
        [KillNode(0, "its agent did not end within 10 s")],
        now=21,
    ),
    Case(
        "an agent is old, but was told a moment ago",
        facts(
            dataclasses.replace(BROKEN[0], command=STOP, command_sent_at=START + 20),
            stopped_node(1, exited_rank(2, 9, exit_code=1)),
        ),
        [SendCommand((1,), EXIT)],
        now=21,
    ),
    Case(
        "all is over and gone",
        facts(node(0, process=exited_process(9, exit_code=1)), node(1, process=exited_process(9))),
        [],
    ),
    Case("over, and the facts are forgotten", facts(missing_node(0), missing_node(1)), [], previous=OVER),
    Case("over, one agent is left", facts(GOOD[0], missing_node(1)), [SendCommand((0,), EXIT)], previous=OVER),
    Case(
        "a pod was deleted before the gang started",
        facts(ready_node(0), node(1, process=ProcessFacts(ProcessState.MISSING, 2))),
        [CreateNode(1, 3)],
    ),
    Case(
        "a pod is being deleted before the gang started",
        facts(ready_node(0), node(1, process=replace(exited_process(1, exit_code=143), is_terminating=True))),
        [],
    ),
    Case(
        "an agent was told to leave before the gang started, and nobody knows yet why",
        facts(ready_node(0), with_sigterm(node(1, LEAVING), 1)),
        [],
    ),
    Case(
        "a pod ended before the gang started",
        facts(
            ready_node(0),
            node(1, process=exited_process(1, exit_code=1, problem=Problem("InitContainerFailed", "init x failed"))),
        ),
        [SendCommand((0,), EXIT)],
    ),
    Case(
        "the pods are refused",
        replace(facts(missing_node(0), missing_node(1)), refusal=Problem("InvalidPod", "no")),
        [],
    ),
    Case(
        "pods that are refused don't start",
        replace(facts(ready_node(0), ready_node(1)), refusal=Problem("InvalidPod", "no")),
        [],
    ),
    Case(
        "surplus_pods go at once",
        replace(facts(ready_node(0), node(1)), surplus_pods=("digits-2-0", "digits-1-0")),
        [RemoveSurplusPod("digits-2-0"), RemoveSurplusPod("digits-1-0")],
    ),
    Case(
        "pods of two specs",
        replace(facts(ready_node(0), missing_node(1)), has_outdated_pods=True),
        [RemoveNode(0, 10.0, "it was made from an earlier spec")],
    ),
    Case(
        "pods that run, and that the status knows to be of an earlier spec",
        replace(facts(running_node(0), running_node(1)), has_outdated_pods=True),
        [],
        previous=Status(observed_generation=3),
    ),
    Case(
        "commands of an earlier leader are refused",
        facts(*(replace(n, command=replace(STOP, leader_term=0)) for n in BROKEN)),
        [SendCommand((0, 1), STOP)],
    ),
    Case(
        "pods that still wait when the job ends would begin for nothing",
        facts(running_node(0, exited_rank(0, 9, exit_code=1)), node(1, process=ProcessFacts(ProcessState.WAITING))),
        [SendCommand((0,), STOP), RemoveNode(1, 10.0, "the job has ended")],
    ),
    Case("a node is not placed, and the time doesn't run", facts(ready_node(0), node(1, process=UNPLACED)), [], 60, 10),
    Case(
        "the time runs from the last placement",
        facts(ready_node(0), node(1, process=replace(UNPLACED, scheduled_at=START + 50))),
        [],
        now=59,
        startup=10,
    ),
    Case(
        "placed, and it takes too long",
        facts(ready_node(0), node(1, process=replace(UNPLACED, scheduled_at=START + 50))),
        [SendCommand((0,), EXIT), RemoveNode(1, 10.0, "the job has ended")],
        now=60,
        startup=10,
    ),
    Case(
        "a process of an earlier replacement said it was ready",
        facts(
            ready_node(0), node(1, agent(1, AgentPhase.READY), dataclasses.replace(running_process(), replacement=1))
        ),
        [],
    ),
)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_what_is_done_next(case: Case) -> None:
    asked = job(startup=case.startup, deadline=case.deadline)

    now = START + case.now
    outcome = judge(asked, case.previous, case.facts, now)

    assert list(decide(asked, case.facts, outcome, now, leader_term=1)) == case.actions


def test_start_tells_every_agent_the_same_peers_in_order() -> None:
    current = facts(ready_node(0), ready_node(1), ready_node(2))

    (action,) = decide(job(3), current, judge(job(3), Status(), current, START), START, leader_term=7)

    assert isinstance(action, SendCommand)
    assert action.command.peers == tuple(Peer(n, f"127.0.0.{n + 1}", 29400 + n) for n in range(3))
    assert action.command.order == (7, 1, 0)


@pytest.mark.parametrize(
    ("known", "deadline", "now", "wake"),
    [
        # No pod is scheduled yet, and preparing a machine may take long.
        (facts(missing_node(0), missing_node(1)), None, T0, None),
        (facts(node(0), node(1)), None, T0, T0 + 30),
        (facts(node(0), node(1)), None, T0 + 30, T0 + 900),
        (facts(missing_node(0), missing_node(1)), 60, T0, T0 + 60),
        # The status then says that the steps of a rank without torch are not counted.
        (
            facts(running_node(0, without_torch(0), reported_at=28), running_node(1, rank(1), reported_at=28)),
            None,
            START + 28,
            START + 30,
        ),
        # The ranks are unknown three heartbeats after the last report.
        (
            facts(running_node(0, rank(0), reported_at=9), running_node(1, rank(1), reported_at=7)),
            None,
            START + 10,
            START + 22,
        ),
        (
            facts(running_node(0, rank(0), reported_at=9), running_node(1, rank(1), reported_at=7)),
            20,
            START + 10,
            START + 15,
        ),
        (
            facts(running_node(0, rank(0), reported_at=9), running_node(1, rank(1), reported_at=7)),
            None,
            START + 22,
            START + 24,
        ),
        (
            facts(dataclasses.replace(BROKEN[0], command=STOP, command_sent_at=START + 9.0), BROKEN[1]),
            None,
            START + 15,
            START + 21,
        ),
        (
            facts(node(0, process=exited_process(9, exit_code=1)), node(1, process=exited_process(9, exit_code=1))),
            None,
            START + 10,
            None,
        ),
    ],
)
def test_when_time_alone_changes_something(
    known: JobFacts, deadline: int | None, now: float, wake: float | None
) -> None:
    asked = job(2, 1, deadline=deadline)

    assert find_requeue_time(asked, known, judge(asked, Status(), known, now), now) == wake
