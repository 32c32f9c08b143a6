import json
import os
import pathlib
import signal
import subprocess
from collections.abc import Callable

import pytest
import yaml

from integration.run.muster_run import OUT, Started, run, sh, start, start_on_terminal, write_job
from muster.cli.commands import app
from muster.cli.main import main
from muster.cli.run.local_job import SCRATCH
from support.muster_process import MUSTER

pytestmark = pytest.mark.usefixtures("may_leave_temporary_files")

WAITING = sh(f'trap "exit 0" TERM; touch {OUT}/up-$RANK; while :; do sleep 0.1; done')
DEAF = sh(f'trap "" TERM; touch {OUT}/up-$RANK; while :; do sleep 0.1; done')


Refused = Callable[..., str]


@pytest.fixture
def refused(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """What `muster run -f JOB OPTIONS` prints before it exits with 2. It starts nothing, so that it runs here."""

    # `main` keeps only the command that it runs, and other tests run others.
    monkeypatch.setattr(app, "registered_commands", app.registered_commands)
    monkeypatch.setattr(app, "registered_groups", app.registered_groups)

    def run_here(job: pathlib.Path, *options: str) -> str:
        folder = tmp_path / "refused"
        monkeypatch.setattr("sys.argv", ["muster", "run", "-f", str(job), "--dir", str(folder), *options])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        assert not folder.exists()
        return capsys.readouterr().err

    return run_here


def private_folders() -> set[str]:
    return {entry.name for entry in SCRATCH.glob("muster-*")}


JUNK = {"WORLD_SIZE": "99", "PET_NNODES": "7", "OMPI_COMM_WORLD_RANK": "5", "MASTER_PORT": "1", "HF_HOME": "/hf"}
"""What another run's launcher, and the user, have set in the shell."""

RECORD = f"""
echo to stdout; echo to stderr >&2
env > {OUT}/env-$RANK
getent hosts algo-1 > {OUT}/first-$RANK; getent hosts algo-2 tiny-1 > {OUT}/second-$RANK
test -f "$MUSTER_ARCHIVE/__main__.py"
find "$MUSTER_RUN_DIR/.." -path "*/agent/__main__.py" | wc -l > {OUT}/agents-$RANK
cat "$SM_CHANNEL_TRAIN/a.txt" > "$MUSTER_CHECKPOINT_DIR/$RANK"
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Started:
    """Return a run that has ended, whose ranks have written what they find. Its folder has data and checkpoints."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "data").mkdir()
    (folder / "data" / "a.txt").write_text("image")
    elsewhere = {"volume": {"hostPath": {"path": "/nowhere/at/all"}}}
    job = write_job(folder, ["sh", "-ec", RECORD], inputs=[{"name": "train", **elsewhere}])
    places = ("--input", f"train={folder / 'data'}", "--checkpoint", str(folder / "checkpoints"))
    return run(folder, job, "-o", "yaml", "--rank", "3", *places, env=JUNK)


def test_success_is_exit_code_0_and_the_resource_on_standard_output(recorded: Started) -> None:
    assert recorded.wait() == 0, recorded.stderr
    resource = yaml.safe_load(recorded.stdout)
    assert resource["kind"] == "DistributedTrainingJob"
    assert resource["spec"]["nodes"] == 2
    assert resource["status"]["phase"] == "Succeeded"
    assert resource["status"]["ranks"]["byState"] == [{"state": "Succeeded", "count": 4, "ranks": "0-3"}]
    assert "Succeeded: " in recorded.stderr
    log = (recorded.folder / "logs" / "tiny-1.log").read_text()
    assert "[rank 2] to stdout" in log
    assert "[rank 3] to stderr" in log
    assert yaml.safe_load((recorded.folder / "job.yaml").read_text()) == resource
    assert recorded.left() == []


def test_one_rank_can_be_listened_to(recorded: Started) -> None:
    assert "[rank 3] to stdout" in recorded.stderr
    assert "[rank 2]" not in recorded.stderr


def test_all_nodes_share_one_copy_of_the_agent(recorded: Started) -> None:
    assert {path.read_text().strip() for path in (recorded.folder / "output").glob("agents-*")} == {"1"}


def test_names_of_nodes_resolve(recorded: Started) -> None:
    if "names" in (recorded.folder / "logs" / "tiny-0.log").read_text():
        pytest.skip("this machine allows no private mounts")
    firsts = {path.read_text().split()[0] for path in (recorded.folder / "output").glob("first-*")}
    texts = [path.read_text() for path in (recorded.folder / "output").glob("second-*")]
    seconds = {line.split()[0] for text in texts for line in text.splitlines()}
    assert len(firsts) == len(seconds) == 1
    assert firsts != seconds
    assert all(address.startswith("127.") for address in firsts | seconds)


def test_another_runs_rendezvous_does_not_reach_the_ranks(recorded: Started) -> None:
    text = (recorded.folder / "output" / "env-0").read_text().splitlines()
    assert "WORLD_SIZE=4" in text
    assert "HF_HOME=/hf" in text
    assert not [line for line in text if line.startswith(("PET_", "OMPI_COMM", "MASTER_PORT=1\n"))]
    assert "not passed on to the ranks" in recorded.stderr
    assert "MASTER_PORT, OMPI_COMM_WORLD_RANK, PET_NNODES, WORLD_SIZE" in recorded.stderr


def test_inputs_and_checkpoints_can_lie_elsewhere(recorded: Started, refused: Refused) -> None:
    folder = recorded.folder.parent
    assert {path.name: path.read_text() for path in (folder / "checkpoints").iterdir()} == dict.fromkeys(
        "0123", "image"
    )
    assert "spec.inputs[0].volume.hostPath.path: /nowhere/at/all does not exist" in refused(folder / "tiny.yaml")


def test_a_failed_rank_is_exit_code_1_its_last_lines_and_its_log(tmp_path: pathlib.Path) -> None:
    script = f'touch {OUT}/up-$RANK; if [ $RANK = 2 ]; then echo "label 13 is not in 0..9" >&2; exit 7; fi; sleep 60'
    done = run(tmp_path, write_job(tmp_path, sh(script)), "-o", "json")
    assert done.wait() == 1
    status = json.loads(done.stdout)["status"]
    assert status["phase"] == "Failed"
    assert status["ranks"]["details"][0]["rank"] == 2
    assert status["ranks"]["details"][0]["exitCode"] == 7
    assert "Rank 2 on tiny-1 failed with exit code 7" in status["message"]
    assert "last lines of rank 2 on tiny-1:\n  | label 13 is not in 0..9\n" in done.stderr
    assert str(done.folder / "logs" / "tiny-1.log") in done.stderr
    assert done.left() == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "job.yaml"),
        ("", "found no DistributedTrainingJob"),
        ("kind: Pod\napiVersion: v1\n", "another kind of resource"),
        ("a: 1\n---\nb: 2\n", "found no DistributedTrainingJob"),
    ],
)
def test_a_bad_file_is_exit_code_2_and_a_sentence(
    refused: Refused, tmp_path: pathlib.Path, text: str, expected: str
) -> None:
    (tmp_path / "job.yaml").write_text(text)
    assert expected in refused(tmp_path / "job.yaml")


def test_bad_options_are_exit_code_2(refused: Refused, tmp_path: pathlib.Path) -> None:
    job = write_job(tmp_path, sh("true"))
    for options, expected in (
        (("--rank", "4"), "--rank 4: the job has ranks 0 to 3"),
        (("--input", "train"), "--input train: expected NAME=DIR"),
        (("--input", "train=/"), "the job has no input 'train'; it has none"),
        (("-o", "xml"), "-o xml: expected json, yaml or wide"),
    ):
        assert expected in refused(job, *options)
    assert "gone.yaml: No such file or directory" in refused(tmp_path / "gone.yaml")


def test_the_first_ctrl_c_lets_ranks_end(tmp_path: pathlib.Path) -> None:
    running = start(tmp_path, write_job(tmp_path, WAITING), "-o", "json")
    running.await_files("up-*", 4)
    running.process.send_signal(signal.SIGINT)
    assert running.wait(60) == 130
    assert "stopping after Ctrl-C (Ctrl-C again to kill at once)" in running.stderr
    assert json.loads(running.stdout)["status"]["phase"] == "Failed"
    assert running.left() == []


def test_the_second_ctrl_c_kills_at_once(tmp_path: pathlib.Path) -> None:
    running = start(tmp_path, write_job(tmp_path, DEAF, nodes=1))
    running.await_files("up-*", 2)
    running.process.send_signal(signal.SIGINT)
    with pytest.raises(Exception, match="timed out"):
        running.wait(2)
    running.process.send_signal(signal.SIGINT)
    assert running.wait(6) == 130
    assert running.left() == []


# A closed terminal sends SIGHUP, too (below).
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), pytest.param(signal.SIGHUP, 129, marks=pytest.mark.long)]
)
def test_other_signals_stop_as_ctrl_c_does(tmp_path: pathlib.Path, number: signal.Signals, code: int) -> None:
    running = start(tmp_path, write_job(tmp_path, WAITING, nodes=1))
    running.await_files("up-*", 2)
    running.process.send_signal(number)
    assert running.wait(60) == code
    assert running.left() == []


def test_the_board_and_ctrl_c_on_a_terminal(tmp_path: pathlib.Path) -> None:
    shown = start_on_terminal(tmp_path, write_job(tmp_path, WAITING))
    assert "tiny" in shown.read_until("● Running")
    shown.started.await_files("up-*", 4)
    shown.press(b"\x03")
    shown.read_until("stopping after Ctrl-C")
    ended = shown.read_until("job.yaml")
    assert "Traceback" not in ended
    assert shown.started.wait(60) == 130
    assert shown.started.left() == []


def test_a_closed_terminal_stops_the_run(tmp_path: pathlib.Path) -> None:
    shown = start_on_terminal(tmp_path, write_job(tmp_path, WAITING, nodes=1))
    shown.started.await_files("up-*", 2)
    os.close(shown.terminal)
    assert shown.started.wait(60) == 129
    assert shown.started.left() == []


def test_a_killed_muster_leaves_nothing(tmp_path: pathlib.Path) -> None:
    running = start(tmp_path, write_job(tmp_path, DEAF, nodes=1))
    running.await_files("up-*", 2)
    running.process.kill()
    running.wait()
    assert running.left() == []


def test_who_outlives_a_killed_agent_and_its_guardian_is_found(tmp_path: pathlib.Path) -> None:
    escape = f"setsid sleep 600 & touch {OUT}/up-$RANK; wait"
    running = start(tmp_path, write_job(tmp_path, sh(escape), nodes=1))
    running.await_files("up-*", 2)
    for pid in running.agents():
        os.kill(pid, signal.SIGKILL)
    assert running.wait() == 1
    assert running.left() == []


def test_runs_of_the_same_job_from_a_file_and_from_standard_input_do_not_meet(tmp_path: pathlib.Path) -> None:
    # Each waits until the other runs, too.
    meet = 'touch "$MEETING/$$"; while [ $(ls "$MEETING" | wc -l) -lt 2 ]; do sleep 0.05; done; echo hello'
    (tmp_path / "meeting").mkdir()
    env = [{"name": "MEETING", "value": str(tmp_path / "meeting")}]
    job = write_job(tmp_path, sh(meet), nodes=1, procsPerNode=1, env=env)
    read = start(tmp_path, job, "-o", "json", "--logs")
    both = [read, start(tmp_path, pathlib.Path("-"), "-o", "json", "--logs", stdin=job.read_bytes())]
    assert [each.wait() for each in both] == [0, 0]
    jobs = [json.loads(each.stdout)["metadata"] for each in both]
    assert [each["name"] for each in jobs] == ["tiny", "tiny"]
    assert len({each["uid"] for each in jobs}) == 2
    assert all("[rank 0] hello" in each.stderr for each in both)


def test_render_is_the_same_every_time(tmp_path: pathlib.Path) -> None:
    job = write_job(tmp_path, ["python", "train.py"], launcher={"torchrun": {}}, hyperparameters={"lr": 0.1})
    # A process of its own each time, because a forked one would have the same order of sets.
    texts = {
        subprocess.run([MUSTER, "render", "-f", str(job)], capture_output=True, check=True).stdout for _ in range(2)
    }
    assert len(texts) == 1
    text = texts.pop().decode()
    assert "--nnodes 2 --nproc_per_node 2 --node_rank 0" in text
    assert "-- python train.py --lr 0.1" in text
    kinds = [document["kind"] for document in yaml.safe_load_all(text) if document]
    assert kinds == ["DistributedTrainingJob", "Service", "ConfigMap", "ConfigMap"]
    assert "# no pod: no image is set" in text
