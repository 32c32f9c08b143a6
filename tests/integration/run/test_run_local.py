"""`muster run --local`: SageMaker's own container toolkit executes the rendered request, and the ranks' lines give the
status.

The toolkit starts the real torchrun and Open MPI 4, as in SageMaker's images, on two hosts of this machine.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from integration.run.muster_run import Started, await_true, run, start, write_job
from support import sagemaker_image
from support.muster_process import END_SECONDS

pytestmark = pytest.mark.usefixtures("own_meeting_port", "may_leave_temporary_files")

TORCH = """
import argparse, json, os, signal, sys, urllib.request
import torch, torch.distributed as dist
arguments = argparse.ArgumentParser()
arguments.add_argument("--lr", type=float)
arguments.add_argument("--kill", type=int)
given = arguments.parse_args()
data = os.listdir(os.environ["SM_CHANNEL_TRAIN"])
# in one piece: print writes in several, between which other ranks write
sys.stdout.write(f"{os.environ['SM_CURRENT_HOST']} {os.environ['SM_USER_ENTRY_POINT']} {given.lr} {data}\\n")
dist.init_process_group("gloo")
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=given.lr)
for step in range(6):
    model(torch.ones(2, 4)).sum().backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
    optimizer.step()
    if step == 3 and dist.get_rank() == given.kill:
        os.kill(os.getpid(), signal.SIGKILL)
if dist.get_rank() == 0:
    # as Transformers' Trainer reports its progress
    token = open(os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"]).read()
    body = {"trainerStatus": {"progressPercentage": 99, "metrics": [{"name": "eval_loss", "value": "0.25"}]}}
    headers = {"Authorization": f"Bearer {token}"}
    url = os.environ["KUBEFLOW_TRAINER_SERVER_URL"]
    urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers), timeout=5)
    torch.save(model.state_dict(), os.path.join(os.environ["SM_MODEL_DIR"], "model.pt"))
dist.destroy_process_group()
"""

MPI = """
import argparse, os, signal, socket
from mpi4py import MPI
arguments = argparse.ArgumentParser()
arguments.add_argument("--kill", type=int)
given = arguments.parse_args()
world = MPI.COMM_WORLD
names = world.allgather(socket.gethostname())
if world.Get_rank() == given.kill:
    os.kill(os.getpid(), signal.SIGKILL)
world.Barrier()
if world.Get_rank() == 0:
    print(f"hosts {names}", flush=True)
"""


def write(
    folder: Path,
    script: str,
    launcher: str,
    hyperparameters: Mapping[str, object],
    instance_groups: Sequence[Mapping[str, object]] = (),
    **spec: Any,
) -> Path:
    sagemaker = {
        "role": "arn:aws:iam::111122223333:role/SageMakerRole",
        "region": "us-west-2",
        **({"instanceGroups": instance_groups} if instance_groups else {"instanceType": "ml.g5.12xlarge"}),
        "framework": {"name": "PyTorch", "version": "2.0.1", "pythonVersion": "py310"},
    }
    return write_job(
        folder,
        ["python", "train.py"],
        backend="SageMaker",
        launcher={launcher: {}},
        hyperparameters=hyperparameters,
        source={"inline": {"files": {"train.py": script}}},
        output={"s3": "s3://team/out"},
        sagemaker=sagemaker,
        **spec,
    )


@pytest.fixture(scope="session")
def image() -> dict[str, str]:
    return {**sagemaker_image.environment(), "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="session")
def mpi_image() -> dict[str, str]:
    return {**sagemaker_image.mpi_environment(), "OMP_NUM_THREADS": "1"}


def status_of(done: Started) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(done.stdout)["status"]
    return result


def states(status: dict[str, Any]) -> dict[str, str]:
    return {entry["state"]: entry["ranks"] for entry in status["ranks"]["byState"]}


def log(done: Started) -> str:
    return "".join(path.read_text() for path in sorted((done.folder / "logs").iterdir()))


# Its two launchers and four ranks each import torch, which takes seconds.
@pytest.mark.long
def test_torchrun_s_ranks_on_two_hosts(tmp_path: Path, image: dict[str, str]) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "images").touch()
    channel = {"name": "train", "s3": {"uri": "s3://team/train"}}
    job = write(tmp_path, TORCH, "torchrun", {"lr": 3e-5, "kill": -1}, inputs=[channel])
    done = run(tmp_path, job, "--local", "-o", "json", "--input", f"train={data}", env=image)
    assert done.process.returncode == 0, done.stderr + log(done)
    status = status_of(done)
    assert (status["phase"], states(status)) == ("Succeeded", {"Succeeded": "0-3"})
    assert status["message"] == "All 4 ranks succeeded at step 6"
    assert (status["progress"]["percent"], status["progress"]["metrics"]) == (100, {"eval_loss": 0.25})
    said = log(done)
    assert "torchrun --nnodes 2 --nproc_per_node 2 --master_addr algo-1 --master_port 7777 --node_rank 1" in said
    assert sorted(re.findall(r"^algo-\d train.py 3e-05 \['images'\]$", said, re.MULTILINE)) == [
        f"algo-{host} train.py 3e-05 ['images']" for host in (1, 1, 2, 2)
    ]
    assert (done.folder / "model" / "model.pt").exists()
    assert done.left() == []


@pytest.mark.long
def test_a_rank_of_torchrun_s_that_is_killed_is_named(tmp_path: Path, image: dict[str, str]) -> None:
    (tmp_path / "data").mkdir()
    channel = {"name": "train", "s3": {"uri": "s3://team/train"}}
    job = write(tmp_path, TORCH, "torchrun", {"lr": 0.1, "kill": 3}, inputs=[channel])
    done = run(tmp_path, job, "--local", "-o", "json", "--input", f"train={tmp_path / 'data'}", env=image)
    assert done.process.returncode == 1
    status = status_of(done)
    assert re.match(r"Rank 3 on algo-2 was killed by SIGKILL at step 4; ", status["message"])
    assert states(status)["Failed"] == "3"
    first = status["ranks"]["details"][0]
    assert (first["rank"], first["node"], first["signal"], first["reason"]) == (3, 1, 9, "RankKilled")
    assert done.left() == []


# As above: the toolkit starts each host's mpirun or orted from a Python of its own.
@pytest.mark.long
def test_an_mpi_world_of_two_hosts(tmp_path: Path, mpi_image: dict[str, str]) -> None:
    group = {"name": "train", "instanceType": "ml.g5.12xlarge", "instanceCount": 2}
    job = write(tmp_path, MPI, "mpi", {"kill": -1}, instance_groups=[group])
    done = run(tmp_path, job, "--local", "-o", "json", env=mpi_image)
    assert done.process.returncode == 0, done.stderr + log(done)
    assert states(status_of(done)) == {"Succeeded": "0-3"}
    assert "[1,mpirank:0,algo-1]<stdout>:hosts ['algo-1', 'algo-1', 'algo-2', 'algo-2']" in log(done)
    assert done.left() == []


@pytest.mark.long
def test_a_rank_of_mpirun_s_that_is_killed_is_named(tmp_path: Path, mpi_image: dict[str, str]) -> None:
    done = run(tmp_path, write(tmp_path, MPI, "mpi", {"kill": 2}), "--local", "-o", "json", env=mpi_image)
    assert done.process.returncode == 1
    status = status_of(done)
    assert re.match(r"Rank 2 on algo-2 was killed by SIGKILL; ", status["message"])
    assert states(status)["Failed"] == "2"
    assert done.left() == []


def test_a_command_once_a_host_that_fails_without_a_report(tmp_path: Path, image: dict[str, str]) -> None:
    script = (
        "import os, sys\nprint('here\\nloss=0.5\\nloss=0.25', flush=True)\n"
        "sys.exit(7 if os.environ['SM_CURRENT_HOST'] == 'algo-2' else 0)\n"
    )
    metrics = [{"name": "loss", "regex": "loss=([0-9.]+)"}]
    job = write(tmp_path, script, "perNode", {}, metrics=metrics)
    done = run(tmp_path, job, "--local", "-o", "json", env={**image, "PYTHONSAFEPATH": "1"})
    assert done.process.returncode == 1
    status = status_of(done)
    words = r"algo-2: SageMaker's toolkit ended with exit code 1: .*ExitCode 7 .*; 2 others were done$"
    assert re.match(words, status["message"])
    assert states(status) == {"Succeeded": "0-1", "Failed": "2-3"}
    assert status["progress"]["metrics"] == {"loss": 0.25}
    assert len(re.findall(r"^here$", log(done), re.MULTILINE)) == 2
    assert "Running: 4 of 4 ranks run" in done.stderr


# In `make test` they end with a killed run (below), which has no time to stop them.
@pytest.mark.long
def test_a_stop_ends_all_hosts(tmp_path: Path, image: dict[str, str]) -> None:
    script = "import time; print('off we go', flush=True); time.sleep(600)"
    started = start(tmp_path, write(tmp_path, script, "perNode", {}), "--local", "--logs", env=image)
    await_true(lambda: "off we go" in started.stderr, END_SECONDS, lambda: started.stderr)
    started.process.terminate()
    assert started.wait() == 143
    assert "Ctrl-C" in started.stderr or "SIGTERM" in started.stderr
    assert started.left() == []


def test_hosts_end_with_a_run_that_is_killed(tmp_path: Path, image: dict[str, str]) -> None:
    script = "import time; print('off we go', flush=True); time.sleep(600)"
    started = start(tmp_path, write(tmp_path, script, "perNode", {}), "--local", "--logs", env=image)
    await_true(lambda: "off we go" in started.stderr, END_SECONDS, lambda: started.stderr)
    started.process.kill()
    started.wait()
    assert started.left(30.0) == []


def test_what_is_missing_is_said_before_anything_starts(tmp_path: Path) -> None:
    job = write(tmp_path, "pass", "torchrun", {})
    done = run(tmp_path, job, "--local")
    assert done.process.returncode == 2
    assert "pip install sagemaker-training==5.1.4 sagemaker-pytorch-training==3.0.0" in done.stderr
    plain = run(tmp_path, job)
    assert (plain.process.returncode, "--local" in plain.stderr) == (2, True)
    block = {"role": "arn:aws:iam::111122223333:role/SageMakerRole", "instanceType": "ml.c5.xlarge"}
    own = write_job(tmp_path, ["true"], name="own", backend="SageMaker", image="img", sagemaker=block)
    contained = run(tmp_path, own, "--local")
    assert (contained.process.returncode, "does not start this job" in contained.stderr) == (2, True), contained.stderr
    groups = [{"name": name, "instanceType": "ml.g5.12xlarge", "instanceCount": 1} for name in ("data", "train")]
    unlike = run(tmp_path, write(tmp_path, "pass", "torchrun", {}, instance_groups=groups), "--local")
    assert (unlike.process.returncode, "instanceGroups data, train" in unlike.stderr) == (2, True), unlike.stderr
    other = run(tmp_path, write_job(tmp_path, ["true"], name="other"), "--local")
    assert (other.process.returncode, "backend: SageMaker" in other.stderr) == (2, True)
    assert not list(tmp_path.glob("muster-runs"))
