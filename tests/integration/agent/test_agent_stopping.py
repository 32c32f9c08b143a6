"""Ranks that call `muster_worker.stopping()` stop at the same call on all nodes, and save before they end."""

import json
import sys
import time

import pytest

from muster.core.facts import JobFacts
from muster.core.graceful_stop import find_stop_call_number
from muster.core.outcome import Outcome, Verdict
from muster_worker.contract.schema import AgentPhase, Command, CommandKind, Launcher, Report
from support.agent_world import JOB, AgentWorld, make_facts, terminate

PYTHON = sys.executable
GRACE_SECONDS = 20.0

# The ranks begin together, as with a collective: a fast rank whose node starts seconds before the other would be
# thousands of calls ahead, more than the other makes in the grace period.
SAVING = """
import glob, json, os, signal, sys, time
import muster_worker
rank = int(os.environ["RANK"])
signal.signal(15, lambda *_: print("SIGTERM", flush=True))
open(f"begun-{rank}", "w").close()
while len(glob.glob("begun-*")) < int(os.environ["WORLD_SIZE"]):
    time.sleep(0.01)
step = 0
while True:
    step += 1
    time.sleep(0.002 * (1 + 3 * rank))
    if step == 3:
        print("on", flush=True)
    if muster_worker.stopping():
        assert muster_worker.stopping()
        with open(f"saved-{rank}.json", "w") as file:
            json.dump({"step": step, "attempt": os.environ["MUSTER_ATTEMPT"]}, file)
        print("saved", step, flush=True)
        sys.exit(0)
"""
HANGING = """
import signal, time
import muster_worker
signal.signal(15, lambda *_: print("SIGTERM", flush=True))
muster_worker.stopping()
print("on", flush=True)
while True:
    time.sleep(1)
"""
UNAWARE = "import time\nprint('on', flush=True)\ntime.sleep(300)\n"


def start(world: AgentWorld, script: str, nodes: int, procs: int, launcher: str = Launcher.DIRECT) -> None:
    world.make_plan(PYTHON, world.write_script(script), nodes=nodes, procs=procs, launcher=launcher)
    world.launch()
    for node in range(nodes):
        world.wait_said(node, "] on", procs)


def command(kind: str, grace: float, *, stop_call: int = 0, leader_term: int = 1, is_graceful: bool = True) -> Command:
    return Command(leader_term, JOB, 1, kind, grace_seconds=grace, is_graceful=is_graceful, stop_call=stop_call)


def begin_stop(world: AgentWorld, node: int, grace: float = GRACE_SECONDS) -> Report:
    world.collector.set_command(node, command(CommandKind.STOP, grace))
    return world.wait(node, lambda report: report.stop_call is not None)


def decide(world: AgentWorld, reports: list[Report]) -> int:
    """Decide as the operator does, and send the decision to all agents."""
    facts = JobFacts(0.0, make_facts(reports), 5.0)
    stop_call = find_stop_call_number(facts, Outcome(Verdict.SUSPENDED))
    assert stop_call is not None
    for report in reports:
        world.collector.set_command(report.node, command(CommandKind.STOP_AT, GRACE_SECONDS, stop_call=stop_call))
    return stop_call


def saved_steps(world: AgentWorld, ranks: int) -> list[int]:
    return [json.loads((world.folder / f"saved-{rank}.json").read_text())["step"] for rank in range(ranks)]


@pytest.mark.parametrize("launcher", [Launcher.DIRECT, pytest.param(Launcher.TORCHRUN, marks=pytest.mark.long)])
def test_all_nodes_stop_at_the_same_call(world: AgentWorld, launcher: str) -> None:
    start(world, SAVING, nodes=2, procs=2, launcher=launcher)
    reports = [begin_stop(world, node) for node in range(2)]
    assert not list(world.folder.glob("saved-*"))
    stop_call = decide(world, reports)
    ended = [world.wait_ended(node) for node in range(2)]
    assert [(rank.exit_code, rank.stopped) for report in ended for rank in report.ranks] == [(0, True)] * 4
    assert saved_steps(world, 4) == [stop_call] * 4
    assert world.leave() != 0
    assert "SIGTERM" not in world.log(0) + world.log(1)
    assert f"the ranks stop at call {stop_call} of muster_worker.stopping()" in world.log(0)


def test_another_leader_decides_the_same(world: AgentWorld) -> None:
    start(world, SAVING, nodes=2, procs=1)
    reports = [begin_stop(world, node) for node in range(2)]
    stop_call = decide(world, reports[:1])  # the leader ends after it has sent one of the commands
    assert stop_call == reports[0].stop_call
    again = max(report.stop_call or 0 for report in reports)
    for node in range(2):
        world.collector.set_command(node, command(CommandKind.STOP_AT, GRACE_SECONDS, stop_call=again, leader_term=2))
    assert [world.wait_ended(node).ranks[0].exit_code for node in range(2)] == [0, 0]


def test_a_single_node_needs_no_decision(world: AgentWorld) -> None:
    start(world, SAVING, nodes=1, procs=2)
    report = begin_stop(world, 0)
    world.wait_ended()
    assert saved_steps(world, 2) == [report.stop_call] * 2


def test_sigterm_to_the_agent_while_the_operator_is_away(world: AgentWorld) -> None:
    world.make_plan(PYTHON, world.write_script(SAVING), nodes=2, procs=2)
    for node in range(2):
        world.start_agent(node, options=("--grace-seconds", "3"))
        world.wait(node, lambda report: report.phase == AgentPhase.READY)
    world.send(CommandKind.START)
    world.wait_said(1, "] on", 2)
    world.collector.refuse_with = 503
    began = time.monotonic()
    terminate(world.agents[1])
    assert world.agents[1].wait(timeout=20) == 143
    assert time.monotonic() - began >= 1.0  # a third of the grace period
    steps = [json.loads((world.folder / f"saved-{rank}.json").read_text())["step"] for rank in (2, 3)]
    assert steps[0] == steps[1]
    assert "SIGTERM" not in world.log(1)
    assert "the operator has not decided where the ranks of all nodes stop" in world.log(1)
    assert not list(world.folder.glob("saved-[01].json"))


def test_ranks_that_never_call_it_get_sigterm_at_once(world: AgentWorld) -> None:
    start(world, UNAWARE, nodes=2, procs=2)
    reports = [begin_stop(world, node) for node in range(2)]
    assert [report.stop_call for report in reports] == [0, 0]
    ended = [world.wait_ended(node) for node in range(2)]
    assert [(rank.signal, rank.stopped) for report in ended for rank in report.ranks] == [(15, True)] * 4


def test_who_does_not_stop_gets_sigterm_before_sigkill(world: AgentWorld) -> None:
    start(world, HANGING, nodes=1, procs=1)
    began = time.monotonic()
    begin_stop(world, 0, grace=2.0)
    assert "SIGTERM" not in world.log()
    report = world.wait_ended()
    assert time.monotonic() - began >= 2.0
    world.wait_said(0, "SIGTERM", 1)
    assert (report.ranks[0].signal, report.ranks[0].stopped) == (9, True)


def test_after_a_failure_ranks_get_sigterm_at_once(world: AgentWorld) -> None:
    start(world, SAVING.replace('lambda *_: print("SIGTERM", flush=True)', "lambda *_: sys.exit(15)"), nodes=2, procs=1)
    for node in range(2):
        world.collector.set_command(node, command(CommandKind.STOP, 2.0, is_graceful=False))
    ended = [world.wait_ended(node) for node in range(2)]
    assert [(rank.exit_code, rank.stopped) for report in ended for rank in report.ranks] == [(15, True)] * 2
    assert [report.stop_call for report in ended] == [None, None]


def test_a_kill_ends_a_graceful_stop(world: AgentWorld) -> None:
    start(world, SAVING, nodes=2, procs=1)
    begin_stop(world, 0)
    world.collector.set_command(0, command(CommandKind.KILL, 0.0, is_graceful=False))
    assert world.wait_ended(0).ranks[0].signal == 9


def test_the_next_attempt_counts_from_the_start(world: AgentWorld) -> None:
    start(world, SAVING, nodes=1, procs=1)
    begin_stop(world, 0)
    world.wait_ended()
    first = saved_steps(world, 1)
    world.send(CommandKind.START, attempt=2)
    report = world.wait(0, lambda report: report.attempt == 2 and report.ranks[0].pid is not None)
    assert report.stop_call is None
    world.wait_said(0, "] on", 2)
    world.collector.set_command(0, Command(1, JOB, 2, CommandKind.STOP, grace_seconds=GRACE_SECONDS, is_graceful=True))
    report = world.wait(0, lambda report: report.phase == AgentPhase.ENDED and report.attempt == 2)
    assert saved_steps(world, 1) == [report.stop_call]
    assert first
