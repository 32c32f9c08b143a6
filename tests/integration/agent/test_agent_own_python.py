"""The agent on its own Python, in the files of images without Python."""

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from muster_dev.pythons import list_agent_pythons
from muster_worker.contract.schema import CommandKind, Launcher, RankState, Report
from support.agent_world import AgentWorld
from support.musl_files import COMMAND, get_musl_root
from support.other_root import (
    PYTHON,
    OtherRoot,
    copy_programs,
    make_machine_root,
    make_own_python,
    need_user_namespaces,
    write_static_program,
)


@pytest.fixture(scope="session")
def own_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need_user_namespaces()
    return make_own_python(tmp_path_factory.mktemp("own"))


@dataclass(frozen=True)
class Image:
    """A command that `fill` copies into a root, and variables that affect it, or none."""

    name: str
    fill: Callable[[Path], tuple[str, ...]]
    variables: Mapping[str, str]


def empty(root: Path) -> tuple[str, ...]:
    if platform.machine() != "x86_64":
        pytest.skip("its program is written in this processor's instructions")
    write_static_program(root / "bin" / "wait")
    return ("/bin/wait",)


def glibc(root: Path) -> tuple[str, ...]:
    copy_programs(root, "sleep")
    return ("sleep", "600")


def musl(root: Path) -> tuple[str, ...]:
    shutil.copytree(get_musl_root(), root, symlinks=True, dirs_exist_ok=True)
    return COMMAND


IMAGES = (
    Image("a static program and nothing else", empty, {"LD_LIBRARY_PATH": "/trap", "LD_PRELOAD": "/trap/libz.so.1"}),
    Image("another glibc", glibc, {"LD_BIND_NOW": "1"}),
    # built with another C library, it ends a program before its first line
    Image("musl", musl, {"LD_LIBRARY_PATH": "/trap", "LD_PRELOAD": f"/lib/libc.musl-{platform.machine()}.so.1"}),
)


def hostile(root: Path) -> Mapping[str, str]:
    """Variables that an image may set for every program, none of which is for the agent."""
    for name in ("libc.so.6", "libcrypto.so.3", "libffi.so.8", "libssl.so.3", "libz.so.1"):
        (root / "trap").mkdir(exist_ok=True)
        (root / "trap" / name).write_text("of another distribution")
    (root / "etc").mkdir(exist_ok=True)
    (root / "etc" / "nsswitch.conf").write_text("passwd: nowhere\nhosts: nowhere files\n")
    return {"PYTHONHOME": "/trap", "PYTHONPATH": "/trap", "OPENSSL_CONF": "/trap/libz.so.1"}


def start(world: AgentWorld, root: OtherRoot, environment: Mapping[str, str]) -> None:
    """Start the job's agents and ranks in the root."""
    world.is_forked = False
    world.python = root.write_python_program(world.folder)
    world.launch(environment={"PATH": "/bin", **environment})


def all_run(report: Report) -> bool:
    return [rank.state for rank in report.ranks] == [RankState.RUNNING] * 2


def test_all_that_the_agent_imports_is_there(world: AgentWorld, tmp_path: Path, own_python: Path) -> None:
    archive = world.pack()
    sources = [name for name in zipfile.ZipFile(archive).namelist() if name.endswith(".py")]
    names = [Path(name) for name in sources if "/site/" not in name]
    modules = [".".join(name.with_suffix("").parts) for name in names if name.stem not in ("__init__", "__main__")]
    assert "muster_worker.rank.wrapper" in modules
    program = f"import importlib, sys; sys.path[:0] = sys.argv[1:]; list(map(importlib.import_module, {modules!r}))"
    root = OtherRoot(tmp_path / "root", own_python, (world.short,))
    subprocess.run([root.write_python_program(tmp_path), "-I", "-W", "error", "-c", program, archive], check=True)


def test_it_copies_itself_into_a_volume_that_is_there_once_more_if_need_be(tmp_path: Path, own_python: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    python = OtherRoot(tmp_path / "root", own_python, (volume,)).write_python_program(tmp_path)
    for _ in range(2):
        subprocess.run([python, "-I", "/muster-python/copy.py", volume], check=True)
    subprocess.run(["diff", "--recursive", own_python, volume], check=True)
    assert os.access(volume / "bin" / "python3", os.X_OK)


def environment_of(pid: int | None) -> dict[str, str]:
    entries = Path(f"/proc/{pid}/environ").read_text().rstrip("\0").split("\0")
    return dict(entry.split("=", 1) for entry in entries)


@pytest.mark.parametrize("image", IMAGES, ids=lambda image: image.name)
def test_a_rank_in_an_image_without_python_is_watched_and_its_death_named(
    world: AgentWorld, tmp_path: Path, own_python: Path, image: Image
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    world.make_plan(*image.fill(root), procs=2)
    theirs = {**hostile(root), **image.variables}
    start(world, OtherRoot(root, own_python, (world.folder, world.short, world.program.parent)), theirs)

    first, second = world.wait(0, all_run).ranks
    seen = environment_of(second.pid)
    # the hook's folder, which a Python rank removes, comes before theirs
    assert {**seen, "PYTHONPATH": seen["PYTHONPATH"].partition(":")[2]}.items() >= theirs.items()
    assert {name for name in seen if name.startswith("LD_")} == {name for name in theirs if name.startswith("LD_")}
    assert (seen["PATH"], seen["MUSTER_PYTHON"], seen["RANK"]) == ("/bin", PYTHON, "1")

    os.kill(second.pid or 0, signal.SIGKILL)
    report = world.wait(0, lambda report: report.ranks[1].state == RankState.EXITED)
    assert (report.ranks[1].signal, report.ranks[1].pid) == (9, second.pid)
    assert (report.ranks[0].state, report.ranks[0].pid) == (RankState.RUNNING, first.pid)
    world.send(CommandKind.STOP, grace=5.0)
    stopped = world.wait_ended().ranks[0]
    assert stopped.stopped
    assert world.leave() == 128 + 9
    summary = json.loads(world.get_termination_log(0).read_text())
    assert (summary["firstFailure"]["rank"], summary["firstFailure"]["signal"]) == (1, 9)


def test_a_command_that_is_not_in_the_image_is_said_so(world: AgentWorld, tmp_path: Path, own_python: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    world.make_plan("/bin/train")
    start(world, OtherRoot(root, own_python, (world.folder, world.short, world.program.parent)), {})
    rank = world.wait_ended().ranks[0]
    assert (rank.exit_code, rank.reason) == (127, "CommandNotFound")
    assert world.leave() == 127


SCRIPT = """
import os, sys, time
import muster_worker
print("RAN BY", sys.executable, os.environ.get("PYTHONHOME"), flush=True)
muster_worker.report(step=7, loss=0.5)
while True:
    time.sleep(0.01)
"""


@pytest.mark.parametrize("python", sorted({sys.executable, next(list_agent_pythons())[1]}))
def test_a_rank_that_is_python_has_the_image_s_and_its_steps_and_stacks_are_seen(
    world: AgentWorld, tmp_path: Path, own_python: Path, python: str
) -> None:
    world.make_plan(python, world.write_script(SCRIPT))
    start(world, make_machine_root(tmp_path / "root", own_python), {"PATH": os.environ["PATH"]})
    world.wait(0, lambda report: bool(report.ranks) and report.ranks[0].step == 7)
    world.send(CommandKind.STOP, grace=5.0)
    report = world.wait_ended()
    assert report.ranks[0].activity == "train.py:7 in <module>"
    assert [(metric.name, metric.value) for metric in report.metrics] == [("loss", 0.5)]
    own = subprocess.run(
        [python, "-c", "import sys; print(sys.executable)"], check=True, capture_output=True, text=True
    )
    assert world.leave() == 128 + signal.SIGTERM
    assert f"RAN BY {own.stdout.strip()} None\n" in world.log()


LAUNCHER = """
import os, subprocess, sys
assert os.environ["PYTHON_EXEC"] != sys.executable
ranks = [
    subprocess.Popen(
        [os.environ["PYTHON_EXEC"], "-u", "-c", "import sys; print(sys.executable); sys.exit(3)"],
        env={**os.environ, "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2"},
    )
    for rank in ("0", "1")
]
sys.exit(max(rank.wait() for rank in ranks))
"""


def test_a_launcher_in_the_image_starts_ranks_by_its_own_python(
    world: AgentWorld, tmp_path: Path, own_python: Path
) -> None:
    world.make_plan(sys.executable, world.write_script(LAUNCHER), launcher=Launcher.PER_NODE, procs=2)
    start(world, make_machine_root(tmp_path / "root", own_python), {"PATH": os.environ["PATH"]})
    report = world.wait_ended()
    assert [rank.exit_code for rank in report.ranks] == [3, 3]
    assert [rank.last_lines for rank in report.ranks] == [(sys.executable,)] * 2
    assert world.leave() == 3
