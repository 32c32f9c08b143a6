"""`muster run` of a job whose code, data, snapshots and results are in S3: the same file as for a cluster."""

import pathlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from fakes import s3_server
from fakes.s3_server import read_objects
from integration.run.muster_run import run, write_job

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

TRAIN = """
import os, pathlib
import lib.names

def names(variable):
    return sorted(path.name for path in pathlib.Path(os.environ[variable]).iterdir())

rank = os.environ["RANK"]
seen = [names("SM_CHANNEL_TRAIN"), names("SM_CHANNEL_ALL"), "old.pt" in names("MUSTER_CHECKPOINT_DIR")]
pathlib.Path(os.environ["MUSTER_CHECKPOINT_DIR"], f"{rank}.pt").write_text("snapshot")
pathlib.Path(os.environ["SM_MODEL_DIR"], f"{rank}.txt").write_text(repr(seen))
"""


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator["S3Client"]:
    with s3_server.s3_server() as url, s3_server.default_s3(url, monkeypatch) as client:
        yield client


def job(folder: pathlib.Path, **spec: object) -> pathlib.Path:
    written = {
        "source": {"inline": {"files": {"scripts/train.py": TRAIN, "lib/names.py": ""}}},
        "inputs": [
            {"name": "train", "s3": {"uri": "s3://data/train/", "distribution": "ShardedByS3Key"}},
            {"name": "all", "s3": {"uri": "s3://data/train/"}},
        ],
        "checkpoint": {"s3": "s3://data/ckpt"},
        "output": {"s3": "s3://data/out"},
        **spec,
    }
    return write_job(folder, ["python", "scripts/train.py"], "tiny", **written)


def test_the_ranks_find_it_all_and_what_they_leave_is_kept(s3: "S3Client", tmp_path: pathlib.Path) -> None:
    for number in range(5):
        s3.put_object(Bucket="data", Key=f"train/{number}", Body=b"x")
    s3.put_object(Bucket="data", Key="ckpt/old.pt", Body=b"x")
    done = run(tmp_path, job(tmp_path))
    assert done.process.returncode == 0, done.stderr
    everything = ["0", "1", "2", "3", "4"]
    first, second = repr([["0", "2", "4"], everything, True]), repr([["1", "3"], everything, True])
    kept = {key: body.decode() for key, body in read_objects(s3, "data", "out/").items()}
    assert kept == {f"out/tiny/model/{rank}.txt": (first, second)[rank // 2] for rank in range(4)}
    assert sorted(read_objects(s3, "data", "ckpt/")) == [f"ckpt/{name}.pt" for name in ("0", "1", "2", "3", "old")]


def test_data_that_is_not_there_ends_the_run_before_it_begins(s3: "S3Client", tmp_path: pathlib.Path) -> None:
    done = run(tmp_path, job(tmp_path))
    assert done.process.returncode == 1
    assert 'muster: S3NotFound: spec.inputs[1].s3.uri: no key in bucket data begins with "train/"' in done.stderr
    assert read_objects(s3, "data") == {}


@pytest.mark.usefixtures("s3")
def test_results_that_can_not_be_kept_fail_the_job(tmp_path: pathlib.Path) -> None:
    name = "'m' + chr(0xdcff)"
    script = f"import os; open(os.path.join(os.environ['SM_MODEL_DIR'], {name}), 'w').close()"
    written = job(tmp_path, inputs=[], source={"inline": {"files": {"scripts/train.py": script}}})
    done = run(tmp_path, written)
    assert done.process.returncode == 1
    assert "can't be uploaded to S3: its name is not UTF-8" in done.stderr
    assert "reason: FolderUnusable" in (done.folder / "job.yaml").read_text()


def test_folders_of_the_users_own_are_taken_instead(s3: "S3Client", tmp_path: pathlib.Path) -> None:
    for name in ("train", "all", "ckpt"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "old.pt").write_text("mine")
    options = [f"--input={name}={tmp_path / name}" for name in ("train", "all")]
    done = run(tmp_path, job(tmp_path), *options, f"--checkpoint={tmp_path / 'ckpt'}")
    assert done.process.returncode == 0, done.stderr
    assert sorted(read_objects(s3, "data")) == [f"out/tiny/model/{rank}.txt" for rank in range(4)]
    assert sorted(path.name for path in (tmp_path / "ckpt").iterdir()) == ["0.pt", "1.pt", "2.pt", "3.pt", "old.pt"]


def test_a_job_that_keeps_all_in_s3_is_tried_without_any_account(tmp_path: pathlib.Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "1.png").write_text("mine")
    options = [f"--input={name}={tmp_path / 'mine'}" for name in ("train", "all")]
    done = run(tmp_path, job(tmp_path), *options, "--keep-here")
    assert done.process.returncode == 0, done.stderr
    model, snapshots = done.folder / "model", done.folder / "checkpoints"
    assert {path.read_text() for path in model.iterdir()} == {repr([["1.png"], ["1.png"], False])}
    assert sorted(path.name for path in snapshots.iterdir()) == ["0.pt", "1.pt", "2.pt", "3.pt"]


def test_a_clusters_config_map_is_none_of_this_machines(tmp_path: pathlib.Path) -> None:
    done = run(tmp_path, write_job(tmp_path, ["python", "train.py"], source={"configMap": {"name": "code"}}))
    assert done.process.returncode == 1
    assert "SourceRefused: spec.source.configMap can't be used: ConfigMap \"code\" isn't on this machine" in done.stderr
