"""A wrapper that an agent with threads forks: it and its rank are as those of a wrapper with a Python of its own."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import muster_worker
from fakes.rank_side_agent import Agent, Heard

FORKER = """
import os, signal, sys, threading
from muster_worker.launchers.forked_wrapper import WrapperCommand, fork_wrapper
from muster_worker.machine import processes
way, *line = sys.argv[1:]
environment = {name: value for name, value in os.environ.items() if name != "SECRET"}
open_file = os.open("/dev/null", os.O_RDONLY)
os.set_inheritable(open_file, True)
reader, writer = os.pipe()
os.set_blocking(writer, False)
signal.set_wakeup_fd(writer)
for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, lambda *_: None)
threading.Thread(target=threading.Event().wait, daemon=True).start()
if way == "fork":
    pid, outputs = fork_wrapper(WrapperCommand(line, line[5:], environment, line[4]))
else:
    process = processes.start(line, environment)
    pid, outputs = process.pid, processes.take_outputs(process)
print(pid, flush=True)
_, status = os.waitpid(pid, 0)
for stream, output in zip((sys.stdout, sys.stderr), outputs):
    stream.buffer.write(os.read(output, 65536))
    stream.flush()
os.kill(os.getpid(), signal.SIGKILL) if os.WIFSIGNALED(status) else os._exit(os.WEXITSTATUS(status))
"""

RANK = """
import json, os, resource, signal, sys
def status(pid, *names):
    lines = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status").read().splitlines())
    return [lines[name].strip() for name in names]
parent = os.getppid()
files = sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1]
own = {name: value for name, value in os.environ.items() if name not in ("MUSTER_PROGRESS", "SHLVL", "_")}
print(json.dumps({
    "environment": own, "arguments": sys.argv, "folder": os.getcwd(),
    "files": [number for number in files if number < 200], "input": sys.stdin.read(),
    "own": status("self", "SigBlk", "SigIgn", "Threads", "NoNewPrivs", "Seccomp"),
    "wrapper": status(parent, "SigBlk", "SigIgn", "Threads"),
    "wrapper's files": len(os.listdir(f"/proc/{parent}/fd")),
    "wrapper's command": open(f"/proc/{parent}/cmdline").read().rstrip(chr(0)),
    "leads": [os.getsid(0) == parent, os.getpgrp() == parent],
    "limits": [resource.getrlimit(limit) for limit in range(16)], "umask": os.umask(0o22),
    "nice": os.getpriority(os.PRIO_PROCESS, 0), "handler": str(signal.getsignal(signal.SIGINT)),
}))
"""

LAUNCHER = """
import json, os, signal, sys
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
files = sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1]
print(json.dumps({
    "environment": {name: value for name, value in os.environ.items() if name not in ("SHLVL", "_")},
    "arguments": sys.argv, "folder": os.getcwd(), "files": [number for number in files if number < 200],
    "input": sys.stdin.read(), "own": [status[name].strip() for name in ("SigBlk", "SigIgn", "Threads")],
    "leads": [os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid()],
}))
"""

STOPPABLE = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("stopped"), sys.exit(3)))
print("ready", flush=True)
while True:
    time.sleep(0.05)  # a signal just before signal.pause() would wait for another one
"""


def _start(agent: Agent, way: str, *command: str) -> "subprocess.Popen[bytes]":
    return _start_wrapper(agent, way, "rank", "--", *command)


def _start_wrapper(agent: Agent, way: str, *arguments: str) -> "subprocess.Popen[bytes]":
    environment = agent.make_environment(RANK="3", LOCAL_RANK="1", SECRET="of the agent", MARK="é")
    environment["PYTHONPATH"] = str(Path(muster_worker.__file__).parents[1])
    line = (sys.executable, "-I", "-S", str(agent.archive), *arguments)
    return agent.spawn([sys.executable, "-c", FORKER, way, *line], environment)


def _run(agent: Agent, way: str, *command: str) -> Heard:
    count = len(agent.heard)
    _start(agent, way, *command)
    return agent.wait_until(lambda: len(agent.heard) > count and agent.heard[-1].is_over)


def test_a_rank_sees_what_it_sees_with_a_wrapper_of_its_own(agent: Agent) -> None:
    (agent.folder / "train.py").write_text(RANK)
    forked, plain = (json.loads(_run(agent, way, sys.executable, "train.py", "a b").text) for way in ("fork", "start"))
    assert forked == plain
    assert "SECRET" not in forked["environment"]


def test_a_launcher_sees_what_it_sees_with_a_wrapper_of_its_own(agent: Agent) -> None:
    (agent.folder / "launch.py").write_text(LAUNCHER)
    launcher = ("launcher", "no-fork-server", "--", sys.executable, "launch.py", "a b")
    outputs = [_start_wrapper(agent, way, *launcher).communicate() for way in ("fork", "start")]
    forked, plain = (json.loads(output.partition(b"\n")[2]) for output, _ in outputs)
    assert forked == plain
    assert "SECRET" not in forked["environment"]
    assert all(b"the launcher imports torch itself" in errors for _, errors in outputs)


@pytest.mark.parametrize("way", ["fork", "start"])
def test_the_wrapper_ends_as_its_rank(agent: Agent, way: str) -> None:
    process = _start(agent, way, sys.executable, "-c", "import sys; sys.exit(7)")
    assert process.wait() == 7
    process = _start(agent, way, sys.executable, "-c", "import os; os.kill(os.getpid(), 9)")
    assert process.wait() == -signal.SIGKILL


def test_a_signal_to_the_wrapper_is_none_of_the_agent_s(agent: Agent) -> None:
    process = _start(agent, "fork", sys.executable, "-c", STOPPABLE)
    assert process.stdout is not None
    wrapper = int(process.stdout.readline())
    agent.wait_for_output("ready")
    os.killpg(wrapper, signal.SIGTERM)
    assert process.wait() == 3
    assert agent.wait_until(lambda: agent.heard[-1].is_over).text == "ready\nstopped\n"


def test_the_rank_dies_with_the_agent(agent: Agent) -> None:
    process = _start(agent, "fork", "sh", "-c", "echo ready; exec sleep 600")
    heard = agent.wait_for_output("ready")
    process.kill()
    agent.wait_until(lambda: heard.is_over)


def test_what_the_wrapper_can_t_do_is_on_its_standard_error(agent: Agent) -> None:
    line = (sys.executable, "-I", "-S", str(agent.archive), "rank", "no separator")
    environment = {**agent.make_environment(), "PYTHONPATH": str(Path(muster_worker.__file__).parents[1])}
    process = agent.spawn([sys.executable, "-c", FORKER, "fork", *line], environment)
    _, errors = process.communicate()
    assert process.returncode == 1
    assert b"ValueError" in errors
