"""The agent with torchrun and torch's own rendezvous, on two nodes of this machine."""

import signal
import sys
import threading
import uuid
import venv
from importlib.util import find_spec
from pathlib import Path

import pytest

from muster_worker.contract.schema import CommandKind, Launcher, RankState
from support.agent_world import AgentWorld
from support.marked_processes import wait_for_exit

pytestmark = [
    pytest.mark.usefixtures("may_leave_temporary_files"),
    # Not importorskip: an import of torch takes seconds, in each process that collects tests.
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed"),
]

PYTHON = sys.executable
SUM = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
value = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(value)
print("sum", int(value), "of", dist.get_world_size(), flush=True)
dist.destroy_process_group()
"""
TAKEN_OVER = """
import glob, os, signal, sys, time, muster_worker
signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun stops the other rank once one has failed
muster_worker.report(step=1)
print("I am", os.environ["RANK"], sys.executable, flush=True)
open("ended-" + os.environ["RANK"], "w").close()
while len(glob.glob("ended-*")) < 2:
    time.sleep(0.01)
sys.exit(9)
"""
DEAD_IN_ALL_REDUCE = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
value = torch.ones(1)
dist.all_reduce(value)
if dist.get_rank() == 1:
    os._exit(3)
print("on", flush=True)
dist.all_reduce(value)
"""


def check_sum(world: AgentWorld) -> None:
    for node in range(2):
        report = world.wait_ended(node)
        assert [rank.exit_code for rank in report.ranks] == [0, 0], world.log(node)
    assert world.leave(0) == 0
    assert world.leave(1) == 0
    assert world.log(0).count("sum 10 of 4") == 2
    assert world.log(1).count("sum 10 of 4") == 2


# In `make test` the quick start's torchrun job meets on two nodes (integration/docs/test_docs.py).
@pytest.mark.long
@pytest.mark.parametrize("launcher", [Launcher.TORCHRUN, Launcher.DIRECT])
def test_two_nodes_meet_on_the_port_that_was_held(world: AgentWorld, launcher: str) -> None:
    world.make_plan(PYTHON, world.write_script(SUM), launcher=launcher, nodes=2, procs=2)
    world.launch()
    check_sum(world)


@pytest.mark.long
def test_a_nodes_own_torchrun_shows_its_ranks(world: AgentWorld) -> None:
    script = world.write_script(SUM)
    world.make_plan("bash", "-c", f"torchrun {script}; true", launcher=Launcher.PER_NODE, nodes=2, procs=2)
    world.launch()
    check_sum(world)


@pytest.mark.long
def test_runs_side_by_side_do_not_meet(world: AgentWorld, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with AgentWorld(tmp_path / "other") as other:
        for run in (world, other):
            run.make_plan(PYTHON, run.write_script(SUM), nodes=2, procs=1)
        threads = [threading.Thread(target=run.launch) for run in (world, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for run in (world, other):
            for node in range(2):
                assert [rank.exit_code for rank in run.wait_ended(node).ranks] == [0]
                assert "sum 3 of 2" in run.log(node)


@pytest.mark.long
def test_a_rank_dies_in_a_collective_and_the_others_are_stopped(world: AgentWorld) -> None:
    marker = str(uuid.uuid4())
    world.make_plan(PYTHON, world.write_script(DEAD_IN_ALL_REDUCE), launcher=Launcher.TORCHRUN, procs=2)
    world.launch(environment={"X": marker})
    report = world.wait(0, lambda result: any(rank.state == RankState.EXITED for rank in result.ranks))
    assert min(report.ranks, key=lambda rank: -(rank.ended_age or 0.0)).exit_code == 3
    world.send(CommandKind.STOP, grace=5.0)
    world.wait_ended()
    assert world.leave() != 0
    assert wait_for_exit(marker) == []


@pytest.mark.long
@pytest.mark.parametrize("arguments", [(), ("--tee", "3")], ids=["plain", "tee"])
def test_torchrun_is_killed_after_its_ranks_unless_it_copies_their_output(
    world: AgentWorld, arguments: tuple[str, ...]
) -> None:
    rank = world.write_script("import time; print('ready', flush=True); time.sleep(600)")
    world.make_plan(PYTHON, rank, launcher=Launcher.TORCHRUN, procs=2, launcher_args=arguments)
    world.launch()
    world.wait(0, lambda result: [entry.state for entry in result.ranks] == [RankState.RUNNING] * 2)
    world.send(CommandKind.STOP, grace=20.0)
    end = world.wait_ended().launcher
    assert end is not None
    assert end.stopped
    assert (end.signal == signal.SIGKILL) == (not arguments)


def test_torchs_absence_is_the_launchers_end(world: AgentWorld) -> None:
    folder = world.folder / "empty"
    venv.create(folder, symlinks=True)
    world.make_plan(str(folder / "bin" / "python"), "train.py", launcher=Launcher.TORCHRUN)
    world.launch()
    report = world.wait_ended()
    assert report.launcher is not None
    assert report.launcher.exit_code == 1
    assert "No module named 'torch'" in report.launcher.last_lines[-1]
    assert report.ranks[0].state == RankState.STARTING
    assert world.leave() == 1


@pytest.mark.long
def test_command_that_does_not_exist_below_torchrun(world: AgentWorld) -> None:
    world.make_plan("no-such-command", launcher=Launcher.TORCHRUN)
    world.launch()
    rank = world.wait_ended().ranks[0]
    assert (rank.exit_code, rank.reason) == (127, "CommandNotFound")


def test_python_that_does_not_exist_for_torchrun(world: AgentWorld) -> None:
    world.make_plan("/nowhere/python3", "train.py", launcher=Launcher.TORCHRUN)
    world.launch()
    end = world.wait_ended().launcher
    assert end is not None
    assert (end.exit_code, end.reason) == (127, "CommandNotFound")
    assert "/nowhere/python3" in end.last_lines[0]
    assert world.leave() == 127


def test_a_process_inside_the_nodes_command_takes_over_as_the_rank(world: AgentWorld) -> None:
    # The ranks need no torch: one import of it takes seconds.
    script = world.write_script(TAKEN_OVER)
    command = ("bash", "-c", f"echo before; torchrun {script}; echo after")
    world.make_plan(*command, launcher=Launcher.PER_NODE, procs=2)
    world.launch()
    report = world.wait_ended()
    assert [(rank.exit_code, rank.step) for rank in report.ranks] == [(9, 1), (9, 1)]
    assert report.launcher is not None
    assert report.launcher.exit_code == 0
    assert world.leave() == 9
    for rank in (0, 1):
        assert f"[rank {rank}] I am {rank} {PYTHON}\n" in world.log()
    assert "[command] after\n" in world.log()
