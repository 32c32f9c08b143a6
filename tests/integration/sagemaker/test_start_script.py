"""muster's start script in SageMaker's containers, with real ranks: a tree of /opt/ml for each host."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from muster.api.document import JSON
from muster.api.spec.sagemaker.distribution import Distribution, SageMakerMpi
from muster.api.spec.sagemaker.launch import Launch
from muster.render.agent_archive import build_agent_archive
from muster.render.sagemaker.request.start_script import make_start_files
from unit.render.sagemaker.builders import sagemaker_job

HOSTS = ["algo-1", "algo-2"]

SHOW = "import json, os, sys; print(json.dumps({**os.environ, 'words': sys.argv[1:]}), flush=True)"
"""A rank that prints its whole environment."""


class Hosts:
    """The containers of one training job, each a folder of this machine."""

    def __init__(
        self,
        folder: Path,
        changes: Mapping[str, JSON],
        how: Launch | None = None,
        names: Sequence[str] = HOSTS,
    ) -> None:
        self.folder = folder
        job = sagemaker_job(changes)
        for host in names:
            config = folder / host / "input" / "config"
            config.mkdir(parents=True)
            (folder / host / "input" / "data" / "train").mkdir(parents=True)
            (config / "resourceconfig.json").write_text(json.dumps({"hosts": names, "current_host": host}))
        for name, content in make_start_files(job, how or Launch("Container", uses_start_script=True)).items():
            (folder / name).write_bytes(content)

    def start(self, host: str, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(self.folder / "muster_start.py"), *arguments],
            stdout=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], "SAGEMAKER_BASE_DIR": str(self.folder / host), **variables},
        )

    def run(self, host: str, *arguments: str, **variables: str) -> list[dict[str, JSON]]:
        """Return the output of each rank of the host, in the ranks' order."""
        started = self.start(host, *arguments, **variables)
        printed, _ = started.communicate(timeout=60)
        assert started.returncode == 0
        visited: list[dict[str, JSON]] = [json.loads(line) for line in printed.splitlines()]
        return sorted(visited, key=lambda each: str(each.get("RANK")))


def python(program: str) -> list[JSON]:
    return [sys.executable, "-c", program]


def test_ranks_without_a_launcher_find_their_places(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path, {"launcher": {"direct": {}}, "procsPerNode": 2, "command": python(SHOW)})
    seen = [rank for host in HOSTS for rank in hosts.run(host, "--lr", "3e-05")]
    assert [rank["RANK"] for rank in seen] == ["0", "1", "2", "3"]
    assert [rank["LOCAL_RANK"] for rank in seen] == ["0", "1", "0", "1"]
    assert {rank["WORLD_SIZE"] for rank in seen} == {"4"}
    assert {(rank["MASTER_ADDR"], rank["MASTER_PORT"]) for rank in seen} == {("algo-1", "7777")}
    assert all(rank["words"] == ["--lr", "3e-05"] for rank in seen)
    last = seen[-1]
    assert json.loads(str(last["SM_HOSTS"])) == HOSTS
    assert last["SM_CURRENT_HOST"] == "algo-2"
    assert last["SM_CHANNEL_TRAIN"] == str(tmp_path / "algo-2" / "input" / "data" / "train")
    assert last["SM_MODEL_DIR"] == str(tmp_path / "algo-2" / "model")


def test_a_node_s_devices_are_counted_where_the_toolkit_has_counted_them(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path, {"launcher": {"direct": {}}, "command": python(SHOW)})
    assert len(hosts.run("algo-1", SM_NUM_GPUS="3", SM_NUM_NEURONS="0")) == 3
    assert len(hosts.run("algo-1", SM_NUM_GPUS="0", SM_NUM_NEURONS="2")) == 2
    assert len(hosts.run("algo-1", SM_NUM_GPUS="0", SM_NUM_NEURONS="0")) == 1


def test_a_command_of_a_node_finds_what_its_own_launcher_needs(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path, {"launcher": {"perNode": {}}, "procsPerNode": 4, "command": python(SHOW)})
    (seen,) = hosts.run("algo-2", SM_HOSTS="the toolkit's")
    assert {name: seen[name] for name in seen if name.startswith("PET_")} == {
        "PET_NNODES": "2",
        "PET_NPROC_PER_NODE": "4",
        "PET_NODE_RANK": "1",
        "PET_MASTER_ADDR": "algo-1",
        "PET_MASTER_PORT": "7777",
    }
    assert "RANK" not in seen
    assert seen["SM_HOSTS"] == "the toolkit's"


def test_a_rank_that_the_toolkit_started_keeps_its_place(tmp_path: Path) -> None:
    toolkit = Launch(
        "Toolkit", distribution=Distribution(mpi=SageMakerMpi()), program="muster_start.py", uses_start_script=True
    )
    hosts = Hosts(tmp_path, {"launcher": {"mpi": {}}, "command": python(SHOW)}, toolkit)
    (seen,) = hosts.run("algo-2", "--x", "1", MASTER_ADDR="elsewhere", RANK="7")
    assert (seen["MASTER_ADDR"], seen["RANK"], seen["words"]) == ("elsewhere", "7", ["--x", "1"])
    assert not [name for name in seen if name.startswith("PET_")]


@pytest.mark.parametrize(
    ("ends", "code"), [("sys.exit(7)", 7), ("os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL)]
)
def test_a_rank_that_fails_ends_the_others(tmp_path: Path, ends: str, code: int) -> None:
    program = f"import os, signal, sys\nif os.environ['RANK'] == '1': {ends}\nsignal.pause()"
    hosts = Hosts(tmp_path, {"launcher": {"direct": {}}, "procsPerNode": 3, "command": python(program)})
    with hosts.start("algo-1") as started:
        assert started.wait(timeout=60) == code


def test_a_stop_reaches_the_ranks(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys, time\n"
        "def saved(*_):\n    os.write(1, b'saved\\n')\n    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, saved)\nos.write(1, b'ready\\n')\nwhile True: time.sleep(0.1)"
    )  # not print, which a signal may interrupt; not pause, before which a signal may come
    hosts = Hosts(tmp_path, {"launcher": {"direct": {}}, "procsPerNode": 2, "command": python(program)})
    with hosts.start("algo-1") as started:
        assert started.stdout is not None
        assert [started.stdout.readline() for _ in range(2)] == ["ready\n"] * 2
        started.send_signal(signal.SIGTERM)
        assert started.stdout.read() == "saved\n" * 2
    assert started.returncode == 128 + signal.SIGTERM


def test_a_stop_while_the_ranks_are_being_started_reaches_them_all(tmp_path: Path) -> None:
    command: list[JSON] = ["sh", "-c", '[ "$LOCAL_RANK" = 0 ] && kill -TERM "$PPID"; exec sleep 600']
    hosts = Hosts(tmp_path, {"launcher": {"direct": {}}, "procsPerNode": 20, "command": command})
    with hosts.start("algo-1") as started:
        assert started.stdout is not None
        assert started.stdout.read() == ""  # none of them is locked any more
    assert started.returncode == 128 + signal.SIGTERM


def test_torchrun_gets_the_world_size(tmp_path: Path) -> None:
    hosts = Hosts(
        tmp_path,
        {
            "launcher": {"torchrun": {"args": ["--log-dir=/tmp"]}},
            "procsPerNode": 2,
            "command": ["python", "train.py"],
        },
    )
    programs = tmp_path / "bin"
    programs.mkdir()
    torchrun = programs / "torchrun"
    torchrun.write_text(f"#!{sys.executable}\n{SHOW}\n")
    torchrun.chmod(0o755)
    (seen,) = hosts.run("algo-2", "--lr", "1", PATH=f"{programs}:{os.environ['PATH']}")
    assert seen["words"] == [
        *("--nnodes", "2", "--nproc_per_node", "2"),
        *("--node_rank", "1", "--master_addr", "algo-1", "--master_port", "7777"),
        *("--log-dir=/tmp", "--no-python", "python", "train.py", "--lr", "1"),
    ]


def test_torchrun_itself_starts_the_ranks(tmp_path: Path) -> None:
    changes: dict[str, JSON] = {"launcher": {"torchrun": {}}, "procsPerNode": 2, "command": python(SHOW)}
    hosts = Hosts(tmp_path, changes, names=["algo-1"])
    own = str(Path(sys.executable).parent)
    seen = hosts.run("algo-1", PATH=f"{own}:{os.environ['PATH']}", OMP_NUM_THREADS="1")
    assert [(rank["RANK"], rank["WORLD_SIZE"]) for rank in seen] == [("0", "2"), ("1", "2")]


def test_a_rank_tells_how_it_is_where_the_agent_lies_beside(tmp_path: Path) -> None:
    changes: dict[str, JSON] = {"launcher": {"direct": {}}, "procsPerNode": 2, "command": python("raise SystemExit(3)")}
    hosts = Hosts(tmp_path, changes)
    (tmp_path / "muster_entry.pyz").write_bytes(build_agent_archive())
    with hosts.start("algo-2") as started:
        assert started.stdout is not None
        lines = started.stdout.read().splitlines()
    assert started.returncode == 3
    document = [json.loads(line.removeprefix("[muster] ")) for line in lines if line.startswith("[muster] ")]
    ends = {line["rank"]: line.get("exit_code") for line in document if line["event"] == "ended"}
    assert 3 in ends.values()
    assert set(ends) <= {2, 3}
    assert {line["world"] for line in document} == {4}


def test_a_rank_that_the_toolkit_started_tells_its_steps(tmp_path: Path) -> None:
    toolkit = Launch(
        "Toolkit", distribution=Distribution(mpi=SageMakerMpi()), program="muster_start.py", uses_start_script=True
    )
    steps = "import muster_worker; muster_worker.report(step=7)"
    hosts = Hosts(tmp_path, {"launcher": {"mpi": {}}, "command": python(steps)}, toolkit)
    (tmp_path / "muster_entry.pyz").write_bytes(build_agent_archive())
    world = {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "0"}
    with hosts.start("algo-2", **world) as started:
        assert started.stdout is not None
        ended = json.loads(started.stdout.read().splitlines()[-1].removeprefix("[muster] "))
    assert (ended["event"], ended["rank"], ended["exit_code"], ended["step"]) == ("ended", 2, 0, 7)
