"""A rank under a shell or in a pipe gets one SIGTERM and has the whole grace period."""

import sys

import pytest

from muster_worker.contract.schema import CommandKind, Launcher
from support.agent_world import AgentWorld

SAVES = """
import signal, sys, time
def save(*_):
    print("got SIGTERM", flush=True)
    time.sleep(2.5)  # longer than leftover processes have
    print("saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("on", flush=True)
while True:
    time.sleep(0.05)
"""
SAVES_IN_SH = """
trap 'echo got SIGTERM; sleep 2.5; echo saved; exit 0' TERM
echo on
while :; do sleep 0.05; done
"""


def run_until_stopped(world: AgentWorld, ranks: int) -> str:
    """Stop the job once its ranks run, and return the log."""
    world.launch()
    world.wait_said(0, "on\n", ranks)
    world.send(CommandKind.STOP, grace=20.0)
    world.wait_ended()
    world.leave()
    return world.log()


@pytest.mark.parametrize(
    ("line", "script", "after"),
    [
        ("{python} {script}; echo after", SAVES, True),
        ("set -e\ntrue\n{python} {script}\necho after\n", SAVES, True),
        ("{python} {script} 2>&1 | cat; echo after", SAVES, True),
        ("trap 'echo a trap' TERM; {python} {script}; echo after", SAVES, True),
        (
            "until {python} {script} && false; do sleep 0.2; done; echo after",
            SAVES,
            False,
        ),  # a loop that starts it again
        ("sh {script}; echo after", SAVES_IN_SH, False),  # no Python: the shell ends at once, its program saves
    ],
)
def test_a_rank_has_one_signal_and_the_whole_grace_period(
    world: AgentWorld, line: str, script: str, *, after: bool
) -> None:
    path = world.write_script(script)
    world.make_plan("sh", "-c", line.format(python=sys.executable, script=path))
    log = run_until_stopped(world, ranks=1)
    starts = log.count("] on\n")  # a shell's loop may start another process during the stop
    assert (log.count("got SIGTERM"), log.count("saved"), log.count("after")) == (starts, starts, int(after)), log


@pytest.mark.parametrize("launcher", [pytest.param(Launcher.TORCHRUN, marks=pytest.mark.long), Launcher.PER_NODE])
def test_ranks_of_a_launcher_under_a_shell(world: AgentWorld, launcher: str) -> None:
    """torchrun starts the shell as a rank, or a shell starts torchrun, whose output a pipe passes on."""
    path = world.write_script(SAVES)
    line = f"{sys.executable} {path}; echo after"
    if launcher == Launcher.PER_NODE:
        starter = world.write_script(STARTER.replace("SCRIPT", repr(path)), "starter.py")
        line = f"{sys.executable} {starter} 2>&1 | cat; echo after"
    world.make_plan("sh", "-c", line, launcher=launcher, procs=2)
    log = run_until_stopped(world, ranks=2)
    assert (log.count("got SIGTERM"), log.count("saved"), log.count("Broken pipe")) == (2, 2, 0), log
    # torchrun signals the whole process group of a rank, so the shells end.
    assert log.count("after") == (0 if launcher == Launcher.TORCHRUN else 1)


STARTER = """
import os, signal, subprocess, sys
ranks = [
    subprocess.Popen(
        [os.environ["PYTHON_EXEC"], "-u", SCRIPT],
        env={**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"},
    )
    for rank in range(2)
]
signal.signal(signal.SIGTERM, lambda *_: [rank.terminate() for rank in ranks])  # as torchrun does
print([rank.wait() for rank in ranks])
"""
"""A launcher like torchrun, without its imports."""
