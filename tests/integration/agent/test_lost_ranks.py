"""Ranks whose wrapper was killed: the agent reports how they ended if it can detect it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from integration.run.muster_run import await_true
from muster_worker.contract.schema import CommandKind, EndReason, Launcher, RankState
from muster_worker.machine import processes
from support.agent_world import AgentWorld

HOLD = """
import fcntl, os, signal, sys, time
def asked_for(*_):
    print("asked for", flush=True)
signal.signal(signal.SIGIO, asked_for)
program = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(program, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("held", flush=True)
while True:
    time.sleep(0.05)
"""
"""The kernel blocks opening and executing a file while another process has a lease on it."""

SURVIVOR = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)  # PR_SET_PDEATHSIG: not to die with its wrapper
print("UP", os.getppid(), flush=True)
open(sys.argv[1]).read()
os._exit(3)
"""

HEADLESS = """
import ctypes, platform, threading, time
threading.Thread(target=time.sleep, args=(300,)).start()
number = {"x86_64": 60, "aarch64": 93}[platform.machine()]  # exit: of this thread alone
print("UP", flush=True)
ctypes.CDLL(None).syscall(number, 0)
"""


@contextmanager
def held(program: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([sys.executable, "-c", HOLD, program], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        try:
            assert holder.stdout.readline() == "held\n"
            yield holder
        finally:
            holder.kill()


def test_a_rank_that_is_killed_before_its_command_is_under_way_ends_as_its_wrapper(world: AgentWorld) -> None:
    program = Path(world.write_script("#!/bin/sh\nexit 0\n", "train.sh"))
    program.chmod(0o755)
    with held(program) as holder:
        world.make_plan(str(program))
        world.launch()
        assert holder.stdout is not None
        assert holder.stdout.readline() == "asked for\n"
        world.send(CommandKind.KILL)
        (rank,) = world.wait_ended().ranks
    assert (rank.pid, rank.signal, rank.stopped, rank.reason) == (None, 9, True, EndReason.WRAPPER_LOST)


def test_a_rank_that_outlives_its_wrapper_runs_until_its_own_end(world: AgentWorld) -> None:
    gate = world.folder / "gate"
    os.mkfifo(gate)
    rank = f"exec {sys.executable} {world.write_script(SURVIVOR)} {gate}"
    wrapped = f"""RANK=0 LOCAL_RANK=0 "$MUSTER_PYTHON" -I -S "$MUSTER_ARCHIVE" rank -- sh -c '{rank}'"""
    world.make_plan("sh", "-c", f"{wrapped}; sleep 300", launcher=Launcher.PER_NODE)
    world.launch()
    world.wait_said(0, "UP", 1)
    wrapper = int(world.log().split("UP ")[1].split()[0])
    os.kill(wrapper, signal.SIGKILL)
    heard = len(world.collector.reports[0])
    report = world.wait(0, lambda _: len(world.collector.reports[0]) >= heard + 4)
    assert report.ranks[0].state == RankState.RUNNING
    gate.write_text("")
    report = world.wait(0, lambda report: report.ranks[0].state == RankState.EXITED)
    assert (report.ranks[0].exit_code, report.ranks[0].reason) == (3, None)
    world.send(CommandKind.KILL)
    world.wait_ended()


def test_a_process_lives_as_long_as_any_of_its_threads() -> None:
    with subprocess.Popen([sys.executable, "-c", HEADLESS], stdout=subprocess.PIPE) as headless:
        assert headless.stdout is not None
        assert headless.stdout.readline() == b"UP\n"
        status = Path(f"/proc/{headless.pid}/status")
        await_true(lambda: "State:\tZ" in status.read_text(), 60, status.read_text)
        assert headless.pid in processes.list_descendants()
        headless.kill()
        os.waitid(os.P_PID, headless.pid, os.WEXITED | os.WNOWAIT)
        # a zombie, until it is reaped
        assert headless.pid not in processes.list_descendants()
