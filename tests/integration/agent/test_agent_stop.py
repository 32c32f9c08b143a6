"""An agent that is asked to stop its ranks, in any way, leaves none of their processes."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from muster.render.agent_archive import build_agent_archive
from muster_worker.contract.schema import AgentPhase, CommandKind, Launcher, RankState, Report
from support.agent_world import AgentWorld, terminate
from support.marked_processes import wait_for_exit

PYTHON = sys.executable
STUBBORN = "import signal, time\nsignal.signal(15, signal.SIG_IGN)\nprint('on', flush=True)\ntime.sleep(300)\n"
POLITE = """
import signal, sys, time
signal.signal(15, lambda *_: sys.exit(12))
print('on', flush=True)
time.sleep(300)
"""
ESCAPING = """
import os, subprocess, sys, time
subprocess.Popen(["sleep", "301"], start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(302)
    os._exit(0)
print("on", flush=True)
time.sleep(303)
"""


@pytest.fixture
def marker(world: AgentWorld) -> str:
    """A variable by which the agent and its processes are found."""
    world.is_forked = False  # a forked process has its server's variables
    return f"MUSTER_TEST={uuid.uuid4()}"


def start(world: AgentWorld, marker: str, script: str, procs: int = 1, launcher: str = Launcher.DIRECT) -> None:
    world.make_plan(PYTHON, world.write_script(script), procs=procs, launcher=launcher)
    name, value = marker.split("=")
    world.launch(environment={f"X{name}": value})
    world.wait(0, lambda _: world.log().count("] on") == procs)


def running(report: Report) -> bool:
    return all(rank.state == RankState.RUNNING for rank in report.ranks)


def test_stop_is_sigterm_first(world: AgentWorld, marker: str) -> None:
    start(world, marker, POLITE, procs=2)
    world.send(CommandKind.STOP, grace=20.0)
    report = world.wait_ended()
    assert [(rank.exit_code, rank.stopped) for rank in report.ranks] == [(12, True), (12, True)]
    assert report.ranks[0].activity == "train.py:5 in <module>"
    assert wait_for_exit(marker.split("=")[1], 1.0) != []  # the agent itself, until it gets Exit
    assert world.leave() == 12
    assert wait_for_exit(marker.split("=")[1]) == []


def test_who_ignores_sigterm_is_killed_after_the_grace(world: AgentWorld, marker: str) -> None:
    start(world, marker, STUBBORN)
    world.send(CommandKind.STOP, grace=0.5)
    rank = world.wait_ended().ranks[0]
    assert (rank.signal, rank.stopped) == (9, True)


@pytest.mark.parametrize("kind", [CommandKind.STOP, CommandKind.KILL, CommandKind.EXIT])
def test_who_ran_away_is_found(world: AgentWorld, marker: str, kind: str) -> None:
    start(world, marker, ESCAPING)
    world.send(kind, grace=0.5)
    world.wait_ended()
    assert world.leave() != 0
    assert wait_for_exit(marker.split("=")[1]) == []


def test_sigterm_to_the_agent(world: AgentWorld, marker: str) -> None:
    start(world, marker, ESCAPING)
    terminate(world.agents[0])
    assert world.agents[0].wait(timeout=20) == 143
    assert world.wait_ended().ranks[0].stopped
    assert wait_for_exit(marker.split("=")[1]) == []


def test_ranks_have_the_pods_grace_and_no_more(world: AgentWorld) -> None:
    world.make_plan(PYTHON, world.write_script(STUBBORN))
    world.start_agent(options=("--grace-seconds", "1"))
    world.wait(0, lambda report: report.phase == AgentPhase.READY)
    world.send(CommandKind.START)
    world.wait(0, lambda _: "] on" in world.log())
    terminate(world.agents[0])
    began = time.monotonic()
    assert world.agents[0].wait(timeout=10) == 143
    assert time.monotonic() - began >= 1.0
    rank = world.wait_ended().ranks[0]
    assert (rank.signal, rank.reason, rank.stopped) == (9, None, True)


def test_sigterm_after_the_work_was_done_takes_nothing_back(world: AgentWorld) -> None:
    world.make_plan("true")
    world.launch()
    world.wait_ended()
    terminate(world.agents[0])
    assert world.agents[0].wait(timeout=10) == 0
    word = json.loads(world.get_termination_log(0).read_text())
    assert (word["ranks"], word["succeeded"], word["terminated"]) == (1, 1, True)


def test_an_agent_that_has_to_leave_before_the_start_has_not_succeeded(world: AgentWorld) -> None:
    world.make_plan("true")
    world.start_agent()
    world.wait(0, lambda report: report.phase == AgentPhase.READY)
    assert world.leave() == 1


def test_sigterm_before_the_start(world: AgentWorld) -> None:
    world.make_plan("true")
    world.start_agent()
    world.wait(0, lambda report: report.phase == AgentPhase.READY)
    terminate(world.agents[0])
    assert world.agents[0].wait(timeout=10) == 143


def test_the_parent_has_exited(world: AgentWorld, marker: str) -> None:
    reader, writer = os.pipe()
    world.make_plan(PYTHON, world.write_script("print('on', flush=True)\nimport time\ntime.sleep(300)\n"))
    name, value = marker.split("=")
    agent = world.start_agent(environment={f"X{name}": value}, lifeline=reader)
    os.close(reader)
    world.wait(0, lambda report: report.phase == AgentPhase.READY)
    world.send(CommandKind.START)
    world.wait(0, lambda _: "] on" in world.log())
    os.close(writer)
    assert agent.wait(timeout=20) == 143
    assert wait_for_exit(value) == []


def test_the_agent_is_killed(world: AgentWorld, marker: str) -> None:
    start(world, marker, ESCAPING)
    inner = world.collector.reports[0]
    assert inner
    world.agents[0].kill()
    assert wait_for_exit(marker.split("=")[1]) == []


def test_the_agent_below_its_guardian_is_killed(world: AgentWorld, marker: str) -> None:
    start(world, marker, ESCAPING)
    guardian = world.agents[0].pid
    children = Path(f"/proc/{guardian}/task/{guardian}/children").read_text()
    (agent,) = map(int, children.split())
    os.kill(agent, signal.SIGKILL)
    assert world.agents[0].wait(timeout=30) == -signal.SIGKILL
    assert wait_for_exit(marker.split("=")[1]) == []


def test_leftovers_of_a_good_command_are_ended(world: AgentWorld, marker: str) -> None:
    world.make_plan("sh", "-c", "sleep 300 & exit 0")
    name, value = marker.split("=")
    world.launch(environment={f"X{name}": value})
    assert world.wait_ended().ranks[0].exit_code == 0
    assert world.leave() == 0
    assert wait_for_exit(value) == []


def test_only_newer_commands_are_obeyed(world: AgentWorld, marker: str) -> None:
    start(world, marker, STUBBORN)
    world.send(CommandKind.KILL, attempt=0)
    world.collector.reports.clear()
    assert world.wait(0, running).phase == AgentPhase.RUNNING
    assert world.wait(0, lambda _: len(world.collector.reports[0]) > 3).phase == AgentPhase.RUNNING


@pytest.mark.parametrize("kind", [CommandKind.STOP, CommandKind.KILL, CommandKind.EXIT])
def test_a_deposed_leaders_commands_are_refused(world: AgentWorld, marker: str, kind: str) -> None:
    world.make_plan(PYTHON, world.write_script(STUBBORN))
    name, value = marker.split("=")
    world.start_agent(environment={f"X{name}": value})
    world.wait(0, lambda report: report.phase == AgentPhase.READY)
    world.send(CommandKind.START, leader_term=2)
    world.wait(0, lambda _: "] on" in world.log())
    world.send(kind, attempt=2, leader_term=1)
    world.collector.reports.clear()
    assert world.wait(0, lambda _: len(world.collector.reports[0]) > 3).phase == AgentPhase.RUNNING
    world.send(CommandKind.KILL, leader_term=2)
    assert world.wait_ended().ranks[0].stopped


def test_a_collector_that_is_away_loses_nothing(world: AgentWorld, marker: str) -> None:
    start(world, marker, "print('on', flush=True)\nimport time\ntime.sleep(1)\nraise SystemExit(4)\n")
    world.collector.refuse_with = 503
    world.collector.wait_refused(3)
    world.collector.refuse_with = None
    rank = world.wait_ended().ranks[0]
    assert (rank.exit_code, rank.stopped) == (4, False)


def test_the_next_attempt_starts_in_the_same_agent(world: AgentWorld) -> None:
    world.make_plan("sh", "-c", "exit 3")
    world.launch()
    first = world.wait_ended()
    assert first.ranks[0].exit_code == 3
    assert world.wait(0, lambda report: report.port is not None).port != world.collector.reports[0][0][1].port
    world.send(CommandKind.START, attempt=2)
    report = world.wait(0, lambda result: result.attempt == 2 and result.phase == AgentPhase.ENDED)
    assert (report.ranks[0].exit_code, report.sequence > 2) == (3, True)
    assert world.leave() == 3


def test_no_attempt_starts_twice_though_another_operator_says_so(world: AgentWorld) -> None:
    world.make_plan("sh", "-c", "exit 3")
    world.launch()
    assert world.wait_ended().ranks[0].exit_code == 3
    world.send(CommandKind.START, leader_term=2)
    world.wait(0, lambda _: "refused to start attempt 1 again" in world.log())
    world.send(CommandKind.EXIT, leader_term=2)
    assert world.agents[0].wait(timeout=10) == 3


def test_a_second_sigterm_means_at_once(world: AgentWorld, marker: str) -> None:
    start(world, marker, STUBBORN)
    terminate(world.agents[0])
    world.wait(0, lambda report: report.phase == AgentPhase.STOPPING)
    terminate(world.agents[0])
    assert world.agents[0].wait(timeout=10) == 143
    assert wait_for_exit(marker.split("=")[1]) == []


def test_who_started_the_agent_may_ignore_its_children(world: AgentWorld) -> None:
    world.make_plan("sh", "-c", "exit 7")
    world.is_forked = False
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # survives exec, as in a shell's `trap "" CHLD`
    try:
        world.start_agent()
    finally:
        signal.signal(signal.SIGCHLD, before)
    world.wait(0, lambda report: report.phase == AgentPhase.READY)
    world.send(CommandKind.START)
    assert world.wait_ended().ranks[0].exit_code == 7
    assert world.leave() == 7


def test_sigterm_differs_from_a_command(world: AgentWorld, marker: str) -> None:
    start(world, marker, STUBBORN)
    assert world.collector.reports[0][-1][1].terminated_age is None
    terminate(world.agents[0])
    assert world.wait(0, lambda report: report.phase == AgentPhase.STOPPING).terminated_age is not None
    terminate(world.agents[0])
    world.agents[0].wait(timeout=30)


def test_a_containers_first_process_hears_sigterm_before_it_has_read_its_plan(tmp_path: Path) -> None:
    archive, plan = tmp_path / "agent.pyz", tmp_path / "plan.json"
    archive.write_bytes(build_agent_archive())
    os.mkfifo(plan)
    inside = ["--map-root-user", "--user", "--pid", "--kill-child", "--fork"]
    node = ["--node", "0", "--replacement", "0", "--token", "t", "--root", str(tmp_path), "--run", str(tmp_path)]
    command = ["unshare", *inside, PYTHON, "-I", str(archive), "node", "--plan", str(plan), *node]
    # once it can be opened for writing it has a reader: the agent waits for its plan
    with subprocess.Popen(command) as unshared, plan.open("wb"):
        (first,) = Path(f"/proc/{unshared.pid}/task/{unshared.pid}/children").read_text(encoding="ascii").split()
        os.kill(int(first), signal.SIGTERM)
        assert unshared.wait(timeout=20) == 143
