"""The wrapper around a rank, with real processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fakes.rank_side_agent import PYTHONS, Agent
from muster_worker.rank_group import link


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


@pytest.mark.parametrize("python", PYTHONS)
def test_start_and_end_reach_the_agent_and_the_launcher(agent: Agent, python: str) -> None:
    before = time.monotonic()
    heard = agent.run_rank("sh", "-c", "echo out; echo err >&2; exit 7", python=python)
    hello, started, ended = heard.messages
    assert isinstance(hello, link.HelloMessage)
    assert (hello.rank, hello.local_rank, hello.pid, hello.role) == (3, 1, agent.processes[0].pid, "wrapper")
    assert isinstance(started, link.StartedMessage)
    assert isinstance(ended, link.EndedMessage)
    assert (ended.exit_code, ended.signal) == (7, None)
    assert before < started.at < ended.at < time.monotonic()
    assert (heard.text, heard.errors) == ("out\n", "err\n")
    assert agent.processes[0].wait() == 7
    assert agent.processes[0].communicate() == (b"", b"")


@pytest.mark.parametrize("code", [0, 1, 126, 127, 137, 255])
def test_exit_codes(agent: Agent, code: int) -> None:
    last = agent.run_rank("sh", "-c", f"exit {code}").last
    assert isinstance(last, link.EndedMessage)
    assert last.exit_code == code
    assert agent.processes[0].wait() == code


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM, signal.SIGPIPE, 34])
def test_the_wrapper_dies_by_the_rank_s_signal_and_leaves_no_core(agent: Agent, number: int) -> None:
    last = agent.run_rank("sh", "-c", f"kill -{int(number)} $$").last
    assert isinstance(last, link.EndedMessage)
    assert (last.exit_code, last.signal) == (None, number)
    assert agent.processes[0].wait() == -number
    assert not list(agent.folder.glob("core*"))


def test_os_exit_in_a_python_rank(agent: Agent) -> None:
    last = agent.run_rank(sys.executable, "-c", "import os; print('there', flush=True); os._exit(9)").last
    assert isinstance(last, link.EndedMessage)
    assert last.exit_code == 9
    assert agent.heard[0].text == "there\n"


@pytest.mark.parametrize(
    ("command", "reason", "code", "words"),
    [
        (["nosuch-command"], "CommandNotFound", 127, ["'nosuch-command'", "not found in PATH (/"]),
        (["./nosuch.sh"], "CommandNotFound", 127, ["'./nosuch.sh'", "no such file in /"]),
        (["/nosuch/train"], "CommandNotFound", 127, ["'/nosuch/train'", "no such file"]),
        ([""], "CommandNotFound", 127, ["command ''"]),
        (["./plain.sh"], "CommandNotExecutable", 126, ["is not executable", "644"]),
        (["./empty.sh"], "CommandNotExecutable", 126, ["'#!'"]),
        (["./lost.sh"], "CommandNotExecutable", 126, ["interpreter", "doesn't exist"]),
        (["./folder"], "CommandNotExecutable", 126, ["is a folder"]),
    ],
)
def test_a_command_that_cannot_run(agent: Agent, command: list[str], reason: str, code: int, words: list[str]) -> None:
    for name, text, mode in (
        ("plain.sh", "#!/bin/sh\n", 0o644),
        ("empty.sh", "echo hi\n", 0o755),
        ("lost.sh", "#!/nosuch/sh\n", 0o755),
    ):
        (agent.folder / name).write_text(text)
        (agent.folder / name).chmod(mode)
    (agent.folder / "folder").mkdir()
    refused = agent.run_rank(*command).last
    assert isinstance(refused, link.RefusedMessage)
    assert refused.reason == reason
    assert [word for word in words if word not in refused.message] == []
    assert agent.processes[0].wait() == code


def test_path_is_searched_as_a_shell_does(agent: Agent) -> None:
    for name, mode in (("one", 0o644), ("two", 0o755)):
        (agent.folder / name).mkdir()
        (agent.folder / name / "train").write_text("#!/bin/sh\necho $0 $1\n")
        (agent.folder / name / "train").chmod(mode)
    path = f"{agent.folder}/none:{agent.folder}/one:{agent.folder}/two:{os.environ['PATH']}"
    heard = agent.run_rank("train", "a b", PATH=path)
    assert heard.text == f"{agent.folder}/two/train a b\n"


def test_the_rank_finds_its_process_as_the_launcher_left_it(agent: Agent) -> None:
    """The same group, CPUs, working folder and signals; standard input empty; no descriptor of muster."""
    script = """
import os, signal, sys
print(os.getpgrp() == os.getppid(), sorted(os.sched_getaffinity(0)), os.getcwd(), repr(sys.stdin.read()))
print(open('/proc/self/status').read().split('SigBlk:')[1].split()[0], os.listdir('/proc/self/fd').__len__())
print([line.split()[1] for line in open('/proc/self/status') if line.startswith('SigIgn')])
"""
    cpu = min(os.sched_getaffinity(0))
    wrapped = ["taskset", "-c", str(cpu), sys.executable, "-I", "-S", str(agent.archive), "rank", "--"]
    command = [sys.executable, "-S", "-c", script]  # without site there is no hook
    agent.spawn([*wrapped, *command], agent.make_environment(RANK="3", LOCAL_RANK="1"))
    heard = agent.wait_until(lambda: len(agent.heard) > 0 and agent.heard[0].is_over)
    plain = subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    first, *rest = heard.text.splitlines()
    assert first == f"True [{cpu}] {agent.folder} ''"
    assert rest == plain.stdout.splitlines()[1:]


def test_the_c_locale_leaves_no_variable_behind(agent: Agent) -> None:
    environment = {name: value for name, value in agent.make_environment().items() if name != "LANG"}
    command = [sys.executable, "-I", "-S", str(agent.archive), "rank", "--", "env"]
    agent.spawn(command, {**environment, "RANK": "0", "LOCAL_RANK": "0"})
    heard = agent.wait_until(lambda: len(agent.heard) > 0 and agent.heard[0].is_over)
    names = {line.partition("=")[0] for line in heard.text.splitlines()}
    assert names - set(environment) == {"RANK", "LOCAL_RANK", "MUSTER_HOOK", "MUSTER_PROGRESS", "PYTHONPATH"}


COUNTING = "trap 'echo term' TERM; trap 'echo int' INT; trap 'echo usr1' USR1; echo ready; while :; do sleep 0.01; done"


@pytest.mark.parametrize(
    ("name", "number"), [("term", signal.SIGTERM), ("int", signal.SIGINT), ("usr1", signal.SIGUSR1)]
)
def test_a_signal_to_the_group_comes_once(agent: Agent, name: str, number: signal.Signals) -> None:
    wrapper = agent.start("sh", "-c", COUNTING)
    agent.wait_for_output("ready\n")
    os.killpg(wrapper.pid, number)
    heard = agent.wait_for_output(f"{name}\n")
    os.killpg(wrapper.pid, signal.SIGUSR1)  # all earlier data is there before this message
    agent.wait_until(lambda: heard.text.count("usr1") == 1 + (name == "usr1"))
    assert heard.text.count(name) == 1 + (name == "usr1")
    assert wrapper.poll() is None
    os.kill(heard.started.pid, signal.SIGKILL)
    assert wrapper.wait() == -9


@pytest.mark.parametrize(
    ("name", "number"), [("term", signal.SIGTERM), ("int", signal.SIGINT), ("usr1", signal.SIGUSR1)]
)
def test_a_wrapper_that_leads_no_group_passes_signals_on(agent: Agent, name: str, number: signal.Signals) -> None:
    wrapper = agent.start("sh", "-c", COUNTING, leads_group=False)
    agent.wait_for_output("ready\n")
    os.kill(wrapper.pid, number)
    heard = agent.wait_for_output(f"{name}\n")
    assert wrapper.poll() is None
    os.kill(heard.started.pid, signal.SIGKILL)
    assert wrapper.wait() == -9


def test_a_rank_that_ignores_sigterm_keeps_its_wrapper(agent: Agent) -> None:
    wrapper = agent.start("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.01; done")
    heard = agent.wait_for_output("ready\n")
    os.killpg(wrapper.pid, signal.SIGTERM)
    os.killpg(wrapper.pid, signal.SIGCONT)
    assert wrapper.poll() is None
    os.killpg(wrapper.pid, signal.SIGKILL)
    agent.wait_until(lambda: heard.is_over)
    agent.wait_until(lambda: not _alive(heard.started.pid))  # its descriptors are closed a little before it exits
    assert not isinstance(heard.last, link.EndedMessage)


def test_the_rank_dies_with_its_wrapper(agent: Agent) -> None:
    wrapper = agent.start("sleep", "600")
    agent.wait_until(lambda: len(agent.heard) > 0 and len(agent.heard[0].messages) == 2)
    os.kill(wrapper.pid, signal.SIGKILL)
    heard = agent.wait_until(lambda: agent.heard[0].is_over)  # the pipes are closed: the rank has ended
    assert isinstance(heard.last, link.StartedMessage)


def test_the_wrapper_dies_with_its_launcher(agent: Agent) -> None:
    command = [sys.executable, "-I", "-S", str(agent.archive), "rank", "--", "sleep", "600"]
    launcher = agent.spawn(
        [sys.executable, "-c", f"import subprocess; subprocess.run({command!r})"],
        agent.make_environment(RANK="0", LOCAL_RANK="0"),
    )
    agent.wait_until(lambda: len(agent.heard) > 0 and len(agent.heard[0].messages) == 2)
    os.kill(launcher.pid, signal.SIGKILL)
    agent.wait_until(lambda: agent.heard[0].is_over)


def test_without_an_agent_the_command_runs_all_the_same(agent: Agent) -> None:
    command = "echo out; echo err >&2; exit 5"
    wrapper = agent.start("sh", "-c", command, MUSTER_AGENT_SOCKET="/nosuch/agent.sock")
    out, err = wrapper.communicate()
    assert (wrapper.returncode, out) == (5, b"out\n")
    complaint, rest = err.decode().split("\n", 1)
    assert complaint.startswith("muster: no connection to the agent")
    assert rest == "err\n"


def test_without_an_agent_a_bad_command_is_explained(agent: Agent) -> None:
    wrapper = agent.start("nosuch-command", MUSTER_AGENT_SOCKET="/nosuch/agent.sock")
    _, err = wrapper.communicate()
    assert wrapper.returncode == 127
    assert "command 'nosuch-command': not found in PATH" in err.decode()


@pytest.mark.parametrize(("rank", "local_rank"), [("x", "0"), ("0", "")])
def test_a_rank_that_is_no_number_is_not_reported(agent: Agent, rank: str, local_rank: str) -> None:
    wrapper = agent.start("true", RANK=rank, LOCAL_RANK=local_rank)
    _, err = wrapper.communicate()
    assert wrapper.returncode == 0
    assert "no connection to the agent" in err.decode()


def test_a_node_s_command_is_a_rank_without_having_one(agent: Agent) -> None:
    command = [sys.executable, "-I", "-S", str(agent.archive), "rank", "--", "sh", "-c", "echo [$RANK]"]
    agent.spawn(command, agent.make_environment(MUSTER_RANK="5", MUSTER_LOCAL_RANK="0"))
    heard = agent.wait_until(lambda: len(agent.heard) > 0 and agent.heard[0].is_over)
    assert (heard.hello.rank, heard.hello.local_rank, heard.text) == (5, 0, "[]\n")


def test_output_without_newline_and_bad_utf8_comes_as_it_is(agent: Agent) -> None:
    script = "import sys; sys.stderr.buffer.write(b'x' * 2**20); sys.stdout.buffer.write(b'\\xff\\xfe')"
    heard = agent.run_rank(sys.executable, "-c", script)
    assert (len(heard.err), bytes(heard.out)) == (2**20, b"\xff\xfe")
