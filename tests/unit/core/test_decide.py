"""The next actions in each state of a job."""

import dataclasses
from collections.abc import Sequence
from dataclasses import replace

import pytest

from muster.api.status.status import Condition, Status
from muster.core.actions import Action, CreateNode, KillNode, RemoveNode, RemoveSurplusPod, SendCommand
from muster.core.decide import decide, find_requeue_time
from muster.core.facts import JobFacts, ProcessFacts, ProcessState, RankFacts
from muster.core.judge import judge
from muster.core.problem import Problem
from muster_worker.contract.schema import AgentPhase, Command, CommandKind, Peer
from support.rows import check_rows
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
    running = rank(number)
    return replace(running, report=replace(running.report, no_step_reason="NoTorch"))


START_COMMAND = command(CommandKind.START)
STOP = Command(1, UID, 1, CommandKind.STOP, grace_seconds=2.0)
KILL = Command(1, UID, 1, CommandKind.KILL)
EXIT = Command(1, UID, 1, CommandKind.EXIT)
FAILED = Status(
    conditions=(
        Condition(type="Failed", status="True", reason="RankFailed", last_transition_time="2025-11-21T04:05:00Z"),
    )
)
ENDED_AGENT = agent(1, AgentPhase.READY)
ENDED_AGENT = replace(ENDED_AGENT, report=replace(ENDED_AGENT.report, phase=AgentPhase.ENDED))
UNPLACED = ProcessFacts(ProcessState.WAITING, problem=Problem("Unschedulable", "none of 2 nodes has room"))
SUCCEEDED_NODES = (
    finished_node(0, exited_rank(0, 9, exit_code=0), exited_rank(1, 9, exit_code=0)),
    finished_node(1, exited_rank(2, 9, exit_code=0), exited_rank(3, 9, exit_code=0)),
)
NODES_WITH_FAILED_RANK = (running_node(0, rank(0), rank(1)), running_node(1, exited_rank(2, 9.0, exit_code=1), rank(3)))


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
    Case("no pod exists", facts(missing_node(0), missing_node(1)), [CreateNode(0, 0), CreateNode(1, 0)]),
    Case("one is missing", facts(ready_node(0), missing_node(1)), [CreateNode(1, 0)]),
    Case("one has not reported", facts(ready_node(0), node(1)), []),
    Case("all are ready", facts(ready_node(0), ready_node(1)), [SendCommand((0, 1), START_COMMAND)]),
    Case(
        "all have received Start",
        facts(*(dataclasses.replace(ready_node(n), command=START_COMMAND) for n in (0, 1))),
        [],
    ),
    Case(
        "an earlier operator has started one node",
        facts(running_node(0), ready_node(1)),
        [SendCommand((1,), START_COMMAND)],
    ),
    Case("all run", facts(running_node(0, rank(0), rank(1)), running_node(1, rank(2), rank(3))), []),
    Case("one node has finished", facts(SUCCEEDED_NODES[0], running_node(1, rank(2), rank(3))), []),
    Case("all have finished", facts(*SUCCEEDED_NODES), [SendCommand((0, 1), EXIT)]),
    Case(
        "all have finished and received Exit",
        facts(*(dataclasses.replace(n, command=EXIT) for n in SUCCEEDED_NODES)),
        [],
    ),
    Case("a rank failed", facts(*NODES_WITH_FAILED_RANK), [SendCommand((0, 1), STOP)]),
    Case(
        "a rank failed, and all have received Stop",
        facts(*(dataclasses.replace(n, command=STOP) for n in NODES_WITH_FAILED_RANK)),
        [],
    ),
    Case(
        "one has stopped, and the other is stopping",
        facts(
            dataclasses.replace(NODES_WITH_FAILED_RANK[0], command=STOP),
            stopped_node(1, exited_rank(2, 9.0, exit_code=1)),
        ),
        [SendCommand((1,), EXIT)],
    ),
    Case(
        "Ctrl-C",
        facts(running_node(0, rank(0), rank(1)), running_node(1, rank(2), rank(3)), stop=ctrl_c_request(9)),
        [SendCommand((0, 1), dataclasses.replace(STOP, grace_seconds=10.0, is_graceful=True))],
    ),
    Case(
        "Ctrl-C twice",
        facts(*(dataclasses.replace(n, command=STOP) for n in NODES_WITH_FAILED_RANK), stop=ctrl_c_request(9, grace=0)),
        [SendCommand((0, 1), KILL)],
    ),
    Case("Ctrl-C before any pod exists", facts(missing_node(0), missing_node(1), stop=ctrl_c_request(-5)), []),
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
            dataclasses.replace(NODES_WITH_FAILED_RANK[0], command=STOP, command_sent_at=START + 9),
            stopped_node(1, exited_rank(2, 9, exit_code=1)),
        ),
        [KillNode(0, "its agent did not end within 10 s"), SendCommand((1,), EXIT)],
        now=21,
    ),
    Case(
        "an agent does not obey, and the time of its command is unknown",
        facts(
            dataclasses.replace(NODES_WITH_FAILED_RANK[0], command=STOP),
            node(1, process=exited_process(9, exit_code=1)),
        ),
        [KillNode(0, "its agent did not end within 10 s")],
        now=21,
    ),
    Case(
        "an agent that runs for a long time has just received its command",
        facts(
            dataclasses.replace(NODES_WITH_FAILED_RANK[0], command=STOP, command_sent_at=START + 20),
            stopped_node(1, exited_rank(2, 9, exit_code=1)),
        ),
        [SendCommand((1,), EXIT)],
        now=21,
    ),
    Case(
        "all processes have exited",
        facts(node(0, process=exited_process(9, exit_code=1)), node(1, process=exited_process(9))),
        [],
    ),
    Case(
        "the job has ended, and the operator has no facts", facts(missing_node(0), missing_node(1)), [], previous=FAILED
    ),
    Case(
        "the job has ended, and one agent runs",
        facts(SUCCEEDED_NODES[0], missing_node(1)),
        [SendCommand((0,), EXIT)],
        previous=FAILED,
    ),
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
        "an agent got SIGTERM before the gang started, and the cause is unknown",
        facts(ready_node(0), with_sigterm(node(1, ENDED_AGENT), 1)),
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
        replace(facts(missing_node(0), missing_node(1)), refusal=Problem("InvalidObject", "no")),
        [],
    ),
    Case(
        "pods that are refused don't start",
        replace(facts(ready_node(0), ready_node(1)), refusal=Problem("InvalidObject", "no")),
        [],
    ),
    Case(
        "surplus pods are deleted at once",
        replace(facts(ready_node(0), node(1)), surplus_pods=("digits-2-0", "digits-1-0")),
        [RemoveSurplusPod("digits-2-0"), RemoveSurplusPod("digits-1-0")],
    ),
    Case(
        "a pod was created from an earlier spec",
        replace(facts(ready_node(0), missing_node(1)), has_outdated_pods=True),
        [RemoveNode(0, 10.0, "it was created from an earlier spec")],
    ),
    Case(
        "pods of an earlier spec run, and the status has the current generation",
        replace(facts(running_node(0), running_node(1)), has_outdated_pods=True),
        [],
        previous=Status(observed_generation=3),
    ),
    Case(
        "commands of an earlier leader are sent again",
        facts(*(replace(n, command=replace(STOP, leader_term=0)) for n in NODES_WITH_FAILED_RANK)),
        [SendCommand((0, 1), STOP)],
    ),
    Case(
        "a pod still waits when the job ends",
        facts(running_node(0, exited_rank(0, 9, exit_code=1)), node(1, process=ProcessFacts(ProcessState.WAITING))),
        [SendCommand((0,), STOP), RemoveNode(1, 10.0, "the job has ended")],
    ),
    Case(
        "the startup timeout does not run while a node is not scheduled",
        facts(ready_node(0), node(1, process=UNPLACED)),
        [],
        60,
        10,
    ),
    Case(
        "the startup timeout runs from the time at which the last node was scheduled",
        facts(ready_node(0), node(1, process=replace(UNPLACED, scheduled_at=START + 50))),
        [],
        now=59,
        startup=10,
    ),
    Case(
        "all nodes are scheduled, and the startup timeout passes",
        facts(ready_node(0), node(1, process=replace(UNPLACED, scheduled_at=START + 50))),
        [SendCommand((0,), EXIT), RemoveNode(1, 10.0, "the job has ended")],
        now=60,
        startup=10,
    ),
    Case(
        "an earlier replacement of a pod has reported Ready",
        facts(
            ready_node(0), node(1, agent(1, AgentPhase.READY), dataclasses.replace(running_process(), replacement=1))
        ),
        [],
    ),
)


def test_next_actions() -> None:
    def check(case: Case) -> None:
        a_job = job(startup=case.startup, deadline=case.deadline)

        now = START + case.now
        outcome = judge(a_job, case.previous, case.facts, now)

        assert list(decide(a_job, case.facts, outcome, now, leader_term=1)) == case.actions

    check_rows(CASES, check)


def test_start_has_the_same_peers_in_order_for_every_agent() -> None:
    current = facts(ready_node(0), ready_node(1), ready_node(2))

    (action,) = decide(job(3), current, judge(job(3), Status(), current, START), START, leader_term=7)

    assert isinstance(action, SendCommand)
    assert action.command.peers == tuple(Peer(n, f"127.0.0.{n + 1}", 29400 + n) for n in range(3))
    assert action.command.order == (7, 1, 0)


@pytest.mark.parametrize(
    ("job_facts", "deadline", "now", "requeue_at"),
    [
        # No pod is scheduled yet: the cluster may need a long time to add a machine.
        (facts(missing_node(0), missing_node(1)), None, T0, None),
        (facts(node(0), node(1)), None, T0, T0 + 30),
        (facts(node(0), node(1)), None, T0 + 30, T0 + 900),
        (facts(missing_node(0), missing_node(1)), 60, T0, T0 + 60),
        # After 30 s the status says that the steps of a rank without torch are not counted.
        (
            facts(running_node(0, without_torch(0), reported_at=28), running_node(1, rank(1), reported_at=28)),
            None,
            START + 28,
            START + 30,
        ),
        # The ranks become Unknown three heartbeats after the last report.
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
            facts(
                dataclasses.replace(NODES_WITH_FAILED_RANK[0], command=STOP, command_sent_at=START + 9.0),
                NODES_WITH_FAILED_RANK[1],
            ),
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
def test_the_job_is_requeued_when_time_alone_changes_something(
    job_facts: JobFacts, deadline: int | None, now: float, requeue_at: float | None
) -> None:
    a_job = job(2, 1, deadline=deadline)

    assert find_requeue_time(a_job, job_facts, judge(a_job, Status(), job_facts, now), now) == requeue_at
