"""A rank on SageMaker: the toolkit starts muster's entry instead of the user's program."""

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from fakes.rank_side_agent import PYTHONS
from muster.render.sagemaker.rank_reports import make_report_files
from muster_worker.contract import log_line
from muster_worker.contract.log_line import RankLine
from support.marked_processes import wait_for_exit

TORCHRUN = {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}


def source(folder: Path, script: str, program: str = "train.py") -> Path:
    """Return an unpacked source archive whose program is `script`."""
    for name, content in {**make_report_files(program), program: script.encode()}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def start(folder: Path, command: Sequence[str], more: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    base = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
    environment = {**base, **TORCHRUN, "SM_CURRENT_HOST": "algo-2", "TMPDIR": str(folder / "tmp"), **(more or {})}
    (folder / "tmp").mkdir(exist_ok=True)
    return subprocess.Popen(
        list(command),
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


class Rank:
    """A rank that has ended: its own output, and its records."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        out, err = process.communicate(timeout=60)
        self.code, self.err = process.returncode, err.decode()
        lines = out.decode().splitlines(keepends=True)
        self.records = [value for line in lines if (value := log_line.parse_line(line)) is not None]
        self.out = "".join(line for line in lines if log_line.MARK not in line)
        self.left = list((folder / "tmp").iterdir())

    @property
    def end(self) -> RankLine:
        return self.records[-1]


def run(folder: Path, script: str, *arguments: str, python: str = sys.executable, **more: str) -> Rank:
    source(folder, script)
    return Rank(start(folder, [python, "-u", "muster_entry.py", *arguments], more), folder)


@pytest.mark.parametrize("python", PYTHONS)
def test_a_rank_tells_its_start_and_its_end(tmp_path: Path, python: str) -> None:
    before = time.time()
    script = "import sys; print(sys.argv, __name__); sys.stderr.write('err\\n')"
    rank = run(tmp_path, script, "--lr", "3e-05", python=python)
    started, ended = rank.records
    assert (rank.code, rank.out, rank.err) == (0, "['train.py', '--lr', '3e-05'] __main__\n", "err\n")
    assert (started.event, started.rank, started.local_rank, started.world) == ("started", 3, 1, 4)
    assert started.host == "algo-2"
    assert (ended.event, ended.exit_code, ended.signal, ended.last_lines) == ("ended", 0, None, ())
    assert before <= started.started_at <= (ended.ended_at or 0) <= time.time()
    assert rank.left == []


@pytest.mark.parametrize("code", [1, 3, 127, 255])
def test_a_rank_s_exit_code_is_its_launcher_s_to_see(tmp_path: Path, code: int) -> None:
    rank = run(tmp_path, f"import os; os._exit({code})")
    assert (rank.code, rank.end.exit_code) == (code, code)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_rank_s_signal_too(tmp_path: Path, number: signal.Signals) -> None:
    rank = run(tmp_path, f"import os; os.kill(os.getpid(), {int(number)})")
    assert (rank.code, rank.end.signal, rank.end.exit_code) == (-number, number, None)
    assert (rank.end.rss_bytes or 0) > 2**20


def test_a_rank_s_termination_messages_and_what_it_was_in(tmp_path: Path) -> None:
    rank = run(tmp_path, "def step():\n    raise ValueError('loss=nan \\u20ac')\nstep()")
    assert rank.end.last_lines[-1] == "ValueError: loss=nan €"
    assert rank.end.activity == "train.py:2 in step"
    assert rank.err.endswith("ValueError: loss=nan €\n")


def test_a_signal_reaches_the_rank_once(tmp_path: Path) -> None:
    script = """
import os, signal, sys, time
count = 0
def handle(*_):
    global count
    count += 1
signal.signal(signal.SIGTERM, handle)
print("ready", flush=True)
end = time.monotonic() + 20
while count == 0 and time.monotonic() < end: time.sleep(0.01)
time.sleep(0.3)
sys.exit(40 + count)
"""
    source(tmp_path, script)
    process = start(tmp_path, [sys.executable, "-u", "muster_entry.py"])
    assert process.stdout is not None
    while b"ready" not in process.stdout.readline():
        pass
    # torchrun gives each rank a process group and signals the whole group
    os.killpg(process.pid, signal.SIGTERM)
    assert Rank(process, tmp_path).code == 41


def test_a_rank_dies_with_its_wrapper(tmp_path: Path) -> None:
    source(tmp_path, "import time; print('ready', flush=True); time.sleep(60)")
    process = start(tmp_path, [sys.executable, "muster_entry.py"], {"TEST_MARK": str(tmp_path)})
    assert process.stdout is not None
    while b"ready" not in process.stdout.readline():
        pass
    process.kill()
    assert wait_for_exit(f"TEST_MARK={tmp_path}", 10.0) == []
    process.communicate()


def test_output_passes_as_it_is(tmp_path: Path) -> None:
    script = """
import os, sys
data = os.urandom(3_000_000).replace(b"[muster]", b"") + b"\\n"
open("expected", "wb").write(data)
view = memoryview(data)
while view: view = view[os.write(1, view):]
"""
    source(tmp_path, script)
    process = start(tmp_path, [sys.executable, "muster_entry.py"])
    out, _ = process.communicate(timeout=60)
    first, _, rest = out.partition(b"\n")
    assert log_line.parse_line(first.decode()) is not None
    assert rest.startswith((tmp_path / "expected").read_bytes())
    assert len(rest[len((tmp_path / "expected").read_bytes()) :].splitlines()) == 1


def test_muster_s_lines_stand_on_lines_of_their_own(tmp_path: Path) -> None:
    rank = run(tmp_path, "import sys; sys.stdout.write('no end'); sys.stdout.flush()")
    assert rank.out == "no end\n"
    assert [record.event for record in rank.records] == ["started", "ended"]


def test_a_line_that_is_written_in_pieces_arrives_in_one(tmp_path: Path) -> None:
    script = "import os, time\nfor word in (b'a', b' b', b' c', b'\\n'):\n    os.write(1, word); time.sleep(0.001)"
    source(tmp_path, script)
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "muster_entry.py"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], **TORCHRUN},
        stdout=writer,
    )
    os.close(writer)
    pieces = []
    while piece := os.read(reader, 65536):
        pieces.append(piece)
    os.close(reader)
    assert process.wait() == 0
    assert all(piece.endswith(b"\n") for piece in pieces)
    assert b"a b c\n" in b"".join(pieces)


def test_the_beginning_of_a_line_is_not_kept_for_long(tmp_path: Path) -> None:
    source(tmp_path, "import os, sys; os.write(1, b'really? '); sys.stdin.read(); os.read(int(sys.argv[1]), 1)")
    waiting, release = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "muster_entry.py", str(waiting)],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], **TORCHRUN},
        stdout=subprocess.PIPE,
        pass_fds=[waiting],
    )
    assert process.stdout is not None
    seen = b""
    while b"really? " not in seen:
        seen += os.read(process.stdout.fileno(), 65536)
    os.write(release, b".")
    assert b'"exit_code":0' in process.communicate(timeout=60)[0]
    os.close(waiting)
    os.close(release)


def test_both_outputs_to_one_place_stay_in_order(tmp_path: Path) -> None:
    script = "import sys\nfor i in range(200):\n    print(i, file=(sys.stdout, sys.stderr)[i % 2], flush=True)"
    source(tmp_path, script)
    process = start(tmp_path, ["sh", "-c", f"{sys.executable} -u muster_entry.py 2>&1"])
    rank = Rank(process, tmp_path)
    assert rank.out.split() == [str(number) for number in range(200)]


def test_what_a_rank_leaves_behind_goes_on_writing(tmp_path: Path) -> None:
    script = "import subprocess; subprocess.Popen(['sh', '-c', 'sleep 1; echo late; echo done > late'])"
    rank = run(tmp_path, script)
    assert rank.out == "late\n"
    assert (tmp_path / "late").read_text() == "done\n"


def test_the_script_s_own_reports_and_its_environment(tmp_path: Path) -> None:
    script = """
import json, os, sys
import muster_worker
muster_worker.report(step=7, loss=0.5)
print(os.environ["SM_USER_ENTRY_POINT"], os.environ["SM_MODULE_NAME"], os.environ["SM_TRAINING_ENV"])
print([name for name in os.environ if name.startswith("MUSTER_")], os.environ.get("PYTHONPATH"))
"""
    value = '{"module_name":"muster_entry","user_entry_point":"muster_entry.py"}'
    more = {"SM_USER_ENTRY_POINT": "muster_entry.py", "SM_MODULE_NAME": "muster_entry", "SM_TRAINING_ENV": value}
    rank = run(tmp_path, script, PYTHONPATH="/user", **more)
    expected = 'train.py train {"module_name":"train","user_entry_point":"train.py"}\n[] /user\n'
    assert rank.out == expected
    assert (rank.end.step, dict(rank.end.metrics)) == (7, {"loss": 0.5})


@pytest.mark.parametrize(
    ("options", "name"),
    [(["-m", "runpy_stand_in"], "muster_entry.py"), ([], "muster_entry.py"), (["-m"], "muster_entry")],
)
def test_however_the_toolkit_starts_it(tmp_path: Path, options: list[str], name: str) -> None:
    # as mpi4py: python -m mpi4py train.py
    (tmp_path / "runpy_stand_in.py").write_text(
        "import runpy, sys\nsys.argv.pop(0)\nrunpy.run_path(sys.argv[0], run_name='__main__')"
    )
    source(tmp_path, "import sys; print(sys.argv[1:], __name__)")
    rank = Rank(start(tmp_path, [sys.executable, *options, name, "--a", "muster_entry.py"]), tmp_path)
    assert (rank.code, rank.out) == (0, "['--a', 'muster_entry.py'] __main__\n")
    assert rank.end.exit_code == 0


def test_a_program_that_is_no_python(tmp_path: Path) -> None:
    source(tmp_path, "#!/bin/sh\necho $0 $1\nexit 4\n", "run/train.sh")
    (tmp_path / "muster_entry.sh").chmod(0o777)  # as the toolkit does
    rank = Rank(start(tmp_path, ["/bin/sh", "-c", "./muster_entry.sh one"]), tmp_path)
    assert (rank.code, rank.out, rank.end.exit_code) == (4, "./run/train.sh one\n", 4)
    assert (tmp_path / "run/train.sh").stat().st_mode & stat.S_IXUSR


def test_without_an_agent_that_can_run_the_program_does(tmp_path: Path) -> None:
    source(tmp_path, "print('there')")
    (tmp_path / "muster_entry.pyz").unlink()
    rank = Rank(start(tmp_path, [sys.executable, "muster_entry.py"]), tmp_path)
    assert (rank.code, rank.out, rank.records) == (0, "there\n", [])


def test_modules_of_the_user_s_are_none_of_the_wrapper_s(tmp_path: Path) -> None:
    for name in ("json", "dataclasses", "threading", "select"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong one')")
    rank = run(tmp_path, "print('there')")
    assert (rank.code, rank.out) == (0, "there\n")
    assert rank.end.exit_code == 0


def test_an_mpi_rank_knows_its_own_host(tmp_path: Path) -> None:
    # mpirun passes the first host's SM_CURRENT_HOST to all
    config = tmp_path / "config"
    config.mkdir()
    (config / "resourceconfig.json").write_text('{"current_host": "algo-2", "hosts": ["algo-1", "algo-2"]}')
    source(tmp_path, "")
    world = {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "0"}
    base = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME")}
    process = subprocess.Popen(
        [sys.executable, "muster_entry.py"],
        cwd=tmp_path,
        env={**base, **world, "SM_CURRENT_HOST": "algo-1", "SM_INPUT_CONFIG_DIR": str(config)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, _ = process.communicate(timeout=60)
    text = log_line.parse_line(out.decode().splitlines()[0])
    assert text is not None
    assert (text.host, text.rank, text.local_rank, text.world) == ("algo-2", 2, 0, 4)


TRAINER = """
import json, os, urllib.request
token = open(os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"]).read()
values = {"current_step": 40, "total_steps": 80, "loss": 0.5}
metrics = [{"name": name, "value": str(value)} for name, value in values.items()]
body = json.dumps({"trainerStatus": {"progressPercentage": 50, "metrics": metrics}}).encode()
request = urllib.request.Request(os.environ["KUBEFLOW_TRAINER_SERVER_URL"], body, {"Authorization": f"Bearer {token}"})
print(urllib.request.urlopen(request, timeout=5).status)
"""


@pytest.mark.parametrize("python", PYTHONS)
def test_rank_0_reports_a_trainer_s_progress(tmp_path: Path, python: str) -> None:
    rank = run(tmp_path, TRAINER, python=python, RANK="0", LOCAL_RANK="0")
    assert (rank.code, rank.out, rank.left) == (0, "200\n", [])
    status = rank.end.trainer_status
    assert status is not None
    assert (status.percent, status.step, status.total_steps) == (50, 40, 80)
    assert rank.end.metrics == {"loss": 0.5}


def test_other_ranks_have_no_server(tmp_path: Path) -> None:
    rank = run(tmp_path, "import os; print([name for name in os.environ if 'KUBEFLOW' in name])")
    assert (rank.code, rank.out, rank.end.trainer_status) == (0, "[]\n", None)


def test_the_user_s_server_comes_first(tmp_path: Path) -> None:
    script = "import os; print([os.environ[name] for name in os.environ if 'KUBEFLOW' in name])"
    rank = run(tmp_path, script, RANK="0", LOCAL_RANK="0", KUBEFLOW_TRAINER_SERVER_URL="https://mine")
    assert (rank.code, rank.out) == (0, "['https://mine']\n")
