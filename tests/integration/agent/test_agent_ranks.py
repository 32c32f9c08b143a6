"""An agent's reports about the ranks that it starts, with real processes."""

import json
import os
import resource
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from muster_worker.contract.schema import (
    AgentPhase,
    AgentProblem,
    Channel,
    CommandKind,
    Launcher,
    Metric,
    RankReport,
    RankState,
)
from support.agent_world import AgentWorld

PYTHON = sys.executable


def run_one(world: AgentWorld, *command: str, launcher: str = Launcher.DIRECT) -> RankReport:
    world.make_plan(*command, launcher=launcher)
    world.launch()
    return world.wait_ended().ranks[0]


def test_a_good_end(world: AgentWorld) -> None:
    rank = run_one(world, "true")
    assert (rank.state, rank.exit_code, rank.signal, rank.stopped) == (RankState.EXITED, 0, None, False)
    assert world.leave() == 0


@pytest.mark.parametrize("launcher", [Launcher.DIRECT, Launcher.PER_NODE])
def test_ranks_know_their_attempt(world: AgentWorld, launcher: str) -> None:
    world.make_plan("sh", "-c", "echo attempt $MUSTER_ATTEMPT", launcher=launcher)
    world.launch(attempt=2, environment={"MUSTER_ATTEMPT": "7"})
    world.wait_ended()
    world.send(CommandKind.START, attempt=3)
    world.wait_said(0, "attempt 3", 1)
    assert [line.rpartition(" ")[2] for line in world.log(0).splitlines() if "] attempt" in line] == ["2", "3"]


def test_exit_code_and_last_lines(world: AgentWorld) -> None:
    rank = run_one(world, "sh", "-c", "echo out; echo one >&2; echo two >&2; exit 7")
    assert (rank.exit_code, rank.last_lines) == (7, ("one", "two"))
    assert world.leave() == 7
    summary = json.loads(world.get_termination_log(0).read_text())
    assert summary["firstFailure"]["exitCode"] == 7
    assert (world.get_root(0) / "output" / "failure").read_text() == "one\ntwo"


@pytest.mark.parametrize(("name", "number"), [("KILL", 9), ("SEGV", 11), ("ABRT", 6)])
def test_signal(world: AgentWorld, name: str, number: int) -> None:
    rank = run_one(world, "sh", "-c", f"kill -{name} $$")
    assert (rank.exit_code, rank.signal) == (None, number)
    assert world.leave() == 128 + number


def test_how_large_a_killed_rank_was(world: AgentWorld) -> None:
    script = world.write_script("import os\nheld = bytearray(b'x' * (100 << 20))\ndel held\nos.kill(os.getpid(), 9)\n")
    rank = run_one(world, PYTHON, script)
    assert (rank.signal, rank.reason) == (9, None)
    assert 100 << 20 <= (rank.rss_bytes or 0) < 300 << 20


def test_a_traceback_tells_what_the_rank_was_in(world: AgentWorld) -> None:
    script = world.write_script("def step():\n    raise ValueError('boom')\nstep()\n")
    rank = run_one(world, PYTHON, script)
    assert rank.last_lines[-1] == "ValueError: boom"
    assert rank.activity == "train.py:2 in step"


def test_script_that_is_not_there(world: AgentWorld) -> None:
    rank = run_one(world, PYTHON, "missing.py")
    assert rank.exit_code == 2
    assert "No such file" in rank.last_lines[-1]


@pytest.mark.parametrize("launcher", [Launcher.DIRECT, Launcher.PER_NODE])
def test_command_not_found(world: AgentWorld, launcher: str) -> None:
    rank = run_one(world, "no-such-command", launcher=launcher)
    assert (rank.exit_code, rank.reason) == (127, "CommandNotFound")
    assert "no-such-command" in rank.last_lines[0]
    assert world.leave() == 127


def test_wrapper_killed_with_its_rank_known(world: AgentWorld) -> None:
    rank = run_one(world, "sh", "-c", "sleep 1; kill -9 $PPID; sleep 60")
    assert (rank.exit_code, rank.signal, rank.reason) == (None, 9, None)


def test_a_mebibyte_without_a_newline(world: AgentWorld) -> None:
    script = world.write_script("import sys\nsys.stderr.write('x' * (1 << 20))\nsys.stderr.flush()\nsys.exit(3)\n")
    rank = run_one(world, PYTHON, script)
    assert rank.exit_code == 3
    assert len(rank.last_lines) == 1
    assert world.leave() == 3
    assert world.log().count("x") >= 1 << 20


def test_bad_utf8_is_replaced(world: AgentWorld) -> None:
    script = world.write_script("import os\nos.write(2, b'caf\\xe9 \\xff\\n')\nraise SystemExit(1)\n")
    rank = run_one(world, PYTHON, script)
    assert rank.last_lines == ("caf\ufffd \ufffd",)
    assert world.leave() == 1
    assert "[rank 0] caf\ufffd \ufffd\n" in world.log()


def test_an_end_is_reported_at_once(world: AgentWorld) -> None:
    # the change is reported at once, not with a heartbeat
    world.collector.heartbeat_seconds = 600.0
    world.make_plan("sh", "-c", "test $RANK = 1 && exit 5; exec sleep 60", procs=2)
    world.launch()
    report = world.wait(0, lambda report: any(rank.state == RankState.EXITED for rank in report.ranks))
    root_cause = report.ranks[1]
    assert root_cause.exit_code == 5
    assert report.ranks[0].state in (RankState.STARTING, RankState.RUNNING)
    world.send(CommandKind.KILL)
    other = world.wait_ended().ranks[0]
    assert (other.signal, other.stopped) == (9, True)


def test_metrics_come_from_the_output(world: AgentWorld) -> None:
    world.make_plan(
        "sh", "-c", "echo loss=0.5; echo loss=0.25 acc=9e-1; echo loss=nan", metrics=(
            Metric("loss", r"loss=([0-9.]+|nan)"),
            Metric("acc", r"acc=(\S+)"),
        )
    )  # fmt: skip
    world.launch()
    report = world.wait_ended()
    assert {metric.name: metric.value for metric in report.metrics} == {"loss": 0.25, "acc": 0.9}


def test_reports_that_do_not_fit_are_said_once(world: AgentWorld) -> None:
    many = "{f'metric_{n}_' + 'x' * 40: 1.0 for n in range(100)}"
    script = world.write_script(f"import muster_worker\nfor _ in range(3):\n    muster_worker.report(1, **{many})\n")
    assert run_one(world, PYTHON, script).exit_code == 0
    assert world.leave() == 0
    assert world.log().count("[muster] rank 0 reports too much: ") == 1


def test_sagemaker_layout(world: AgentWorld) -> None:
    script = world.write_script("import os, json\nprint('ENV', json.dumps(dict(os.environ)), flush=True)\n")
    world.make_plan(
        PYTHON,
        script,
        hyperparameters={"lr": 3e-5, "n": 2, "nesterov": True, "name": "010"},
        channels=(Channel("train", "image/png"), Channel("validation")),
    )
    world.launch(environment={"NCCL_SOCKET_IFNAME": "mine", "MUSTER_TOKEN": "secret", "RANK": "77"})
    assert world.wait_ended().ranks[0].exit_code == 0
    assert world.leave() == 0
    environment = json.loads(world.log().split("ENV ")[1].split("\n")[0])
    root = world.get_root(0)
    assert environment["NCCL_SOCKET_IFNAME"] == "mine"
    assert environment["GLOO_SOCKET_IFNAME"] == "lo"
    assert environment["RANK"] == "0"
    assert "MUSTER_TOKEN" not in environment
    assert environment["SM_HOSTS"] == '["algo-1"]'
    assert environment["SM_CURRENT_HOST"] == "algo-1"
    assert environment["SM_CHANNEL_TRAIN"] == str(root / "input/data/train")
    assert environment["SM_HPS"] == '{"lr":3e-05,"n":2,"name":"010","nesterov":true}'
    assert json.loads(environment["SM_USER_ARGS"]) == [
        *("--lr", "3e-05", "-n", "2", "--name", "010", "--nesterov", "True")
    ]
    config = root / "input" / "config"
    assert json.loads((config / "hyperparameters.json").read_text())["name"] == '"010"'
    assert json.loads((config / "inputdataconfig.json").read_text())["train"]["ContentType"] == "image/png"
    assert json.loads((config / "resourceconfig.json").read_text())["current_host"] == "algo-1"
    assert (root / "model").is_dir()


def test_a_flood_does_not_hold_up_the_heartbeats(world: AgentWorld) -> None:
    flood = "import os\nline = b'y' * 4095 + b'\\n'\nwhile True:\n    os.write(1, line * 64)\n"
    world.make_plan(PYTHON, world.write_script(flood))
    world.launch()
    world.wait(0, lambda report: report.ranks != () and report.ranks[0].state == RankState.RUNNING)
    heard, stat = len(world.collector.reports[0]), world.log_path(0).stat().st_size
    # the flood never ends: heartbeats that wait for a quiet moment would never be sent
    world.wait(0, lambda _: len(world.collector.reports[0]) >= heard + 4)
    assert world.log_path(0).stat().st_size > stat
    world.send(CommandKind.KILL)
    assert world.wait_ended().ranks[0].signal == 9


def test_names_resolve_and_the_machines_file_stays(world: AgentWorld, tmp_path: Path) -> None:
    before, name = Path("/etc/hosts").read_bytes(), socket.gethostname()
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n127.0.0.7 algo-1\n")
    world.make_plan("sh", "-c", "echo name=$(uname -n); exec cat /etc/hosts")
    world.start_agent(hosts=hosts)
    world.wait(0, lambda report: report.phase == AgentPhase.READY)
    world.send(CommandKind.START)
    world.wait_ended()
    assert (Path("/etc/hosts").read_bytes(), socket.gethostname()) == (before, name)
    assert world.leave() == 0
    # if the machine forbids private mounts, the agent logs that instead
    is_done = "127.0.0.7 algo-1" in world.log() and "name=algo-1" in world.log()
    assert is_done or "resolve in Python ranks only" in world.log()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount something for all of the machine to see")
def test_what_the_machine_mounts_later_is_there_for_ranks(world: AgentWorld, tmp_path: Path) -> None:
    shared, late = tmp_path / "shared", tmp_path / "shared" / "late"
    shared.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", shared], check=False).returncode != 0:
        pytest.skip("this machine allows no mounts")
    try:
        subprocess.run(["mount", "--make-shared", shared], check=True)
        late.mkdir()
        (tmp_path / "hosts").write_text("127.0.0.1 localhost\n")
        world.make_plan("sh", "-c", f"ls {late}")
        world.start_agent(hosts=tmp_path / "hosts")
        world.wait(0, lambda report: report.phase == AgentPhase.READY)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", late], check=True)
        (late / "images").touch()
        world.send(CommandKind.START)
        world.wait_ended()
        assert world.leave() == 0
        assert "images" in world.log()
    finally:
        subprocess.run(["umount", "-R", "-l", shared], check=True)


def test_a_rank_that_takes_all_connections_does_not_silence_its_node(world: AgentWorld) -> None:
    script = world.write_script("""
import os, socket, time
reader, writer = os.pipe()
for _ in range(4):
    if os.fork() == 0:
        held = []
        for _ in range(60):
            held.append(socket.socket(socket.AF_UNIX))
            held[-1].connect(os.environ["MUSTER_AGENT_SOCKET"])
        os.write(writer, b".")
        time.sleep(300)
for _ in range(4):
    os.read(reader, 1)
print("full", flush=True)
os._exit(7)
""")
    world.make_plan(PYTHON, script)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (150, limits[1]))
    world.is_forked = False  # to inherit the limit
    try:
        world.start_agent()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    world.wait(0, lambda report: report.phase == AgentPhase.READY)
    world.send(CommandKind.START)
    world.wait(0, lambda report: bool(report.ranks) and report.ranks[0].exit_code == 7)
    world.wait_said(0, "full", 1)
    world.send(CommandKind.KILL)
    world.wait_ended()


@pytest.mark.parametrize("replace", ["os.mkfifo(mine)", "os.symlink('/dev/zero', mine)", "os.mkdir(mine)"])
def test_a_rank_that_puts_something_else_in_the_place_of_its_progress(world: AgentWorld, replace: str) -> None:
    find = "mine = glob.glob(os.environ['MUSTER_RUN_DIR'] + '/rank-0-*.progress')[0]"
    script = world.write_script(
        f"import glob, os, time\n{find}\nos.unlink(mine)\n{replace}\ntime.sleep(1)\nos._exit(7)\n"
    )
    assert run_one(world, PYTHON, script).exit_code == 7
    assert world.leave() == 7


def test_one_who_claims_a_rank_of_another_node_is_a_problem(world: AgentWorld) -> None:
    world.make_plan("sh", "-c", 'RANK=5 LOCAL_RANK=0 "$MUSTER_PYTHON" -I -S "$MUSTER_ARCHIVE" rank -- true')
    world.launch()
    value = "a process reports to be rank 5; the node has only rank 0"
    assert world.wait_ended().problem == AgentProblem("WorldSizeMismatch", value)


def test_the_token_is_read_anew(world: AgentWorld) -> None:
    world.make_plan("true")
    world.start_agent()
    world.wait(0, lambda report: report.phase == AgentPhase.READY)
    (world.short / "0" / "token").write_text("rotated-0")
    world.wait(0, lambda _: "Bearer rotated-0" in world.collector.tokens)
    world.send(CommandKind.EXIT)
    assert world.agents[0].wait(timeout=30) == 1  # it was stopped before it started a rank
