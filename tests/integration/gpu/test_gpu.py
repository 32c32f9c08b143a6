"""Ranks on GPUs: NCCL over one and over all, mixed precision, the chosen interface, each node's devices.

`make test-gpu` runs the tests that need a GPU. `make test-long` runs the same script on the CPU over gloo, with fake
GPU names.
"""

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from integration.run.muster_run import end, list_started, run, write_job
from muster.backends.local.devices import VISIBLE_DEVICES, find_machine_gpus

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

WORKLOAD = Path(__file__).with_name("gpu_workload.py")
NAMED = ("0", "1")
"""Fake GPU names for a run on the CPU; no program opens them."""

DEVICES = [
    pytest.param("cpu", "all", marks=pytest.mark.long),
    pytest.param("cpu", "one", marks=pytest.mark.long),
    pytest.param("cuda", "one", marks=pytest.mark.gpu),
    pytest.param("cuda", "all", marks=pytest.mark.gpu),
]


@dataclass(frozen=True)
class Ran:
    """A run's status, its logs by node, and the ranks' output in the order of the ranks."""

    status: Mapping[str, Any]
    logs: Sequence[str]
    ranks: Sequence[Mapping[str, Any]]


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    yield
    end(list_started())


def ran(folder: Path, device: str, gpus: Sequence[str], nodes: int = 1) -> Ran:
    """Run the workload on these GPUs, with one rank for each."""
    command = [sys.executable, str(WORKLOAD), "--device", device]
    job = write_job(folder, command, nodes=nodes, procsPerNode="Auto")
    done = run(
        folder, job, "-o", "json", env={VISIBLE_DEVICES: ",".join(gpus), "NCCL_DEBUG": "INFO", "OMP_NUM_THREADS": "1"}
    )
    assert done.wait() == 0, done.stderr
    logs = [(done.folder / "logs" / f"tiny-{node}.log").read_text() for node in range(nodes)]
    said = [json.loads(text) for log in logs for text in re.findall(r"SEEN (\{.*\})", log)]
    return Ran(json.loads(done.stdout)["status"], logs, sorted(said, key=lambda rank: int(rank["rank"])))


def gpus_of(device: str) -> tuple[str, ...]:
    """Return all GPUs of this machine."""
    return find_machine_gpus(os.environ, Path("/dev")) if device == "cuda" else NAMED


@pytest.mark.parametrize(("device", "how_many"), DEVICES)
def test_ranks_train_together_in_mixed_precision(device: str, how_many: str, tmp_path: Path) -> None:
    all_gpus = gpus_of(device)
    gpus = all_gpus[:1] if how_many == "one" else all_gpus
    seen = ran(tmp_path, device, gpus)

    assert [rank["rank"] for rank in seen.ranks] == list(range(len(gpus)))
    for number, rank in enumerate(seen.ranks):
        assert rank["world"] == len(gpus)
        assert rank["sum"] == [sum(range(1, len(gpus) + 1))]
        assert rank["variables"][VISIBLE_DEVICES] == ",".join(gpus)
        assert rank["variables"]["SM_NUM_GPUS"] == str(len(gpus))
        on_gpu, on_cpu = ("nccl", f"cuda:{number}"), ("gloo", "cpu")
        assert (rank["backend"], rank["device"]) == (on_gpu if device == "cuda" else on_cpu)
        assert all(last < first / 2 for first, last in rank["losses"].values()), rank["losses"]
    assert ("float16" in seen.ranks[0]["losses"]) is (device == "cuda")


@pytest.mark.parametrize(("device", "how_many"), [DEVICES[1], DEVICES[2]])
def test_the_library_uses_the_interface_that_was_chosen(device: str, how_many: str, tmp_path: Path) -> None:
    del how_many  # one rank is enough: NCCL opens the interface for any number
    seen = ran(tmp_path, device, gpus_of(device)[:1])

    (variables,) = (rank["variables"] for rank in seen.ranks)
    chosen = variables["GLOO_SOCKET_IFNAME"]
    assert variables["NCCL_SOCKET_IFNAME"] == f"={chosen}"
    if device == "cuda":
        assert f"Bootstrap: Using {chosen}:" in seen.logs[0], seen.logs[0]


@pytest.mark.parametrize(
    "device", [pytest.param("cpu", marks=pytest.mark.long), pytest.param("cuda", marks=pytest.mark.gpu)]
)
def test_each_node_gets_its_share_of_the_devices(device: str, tmp_path: Path) -> None:
    gpus = gpus_of(device)
    if len(gpus) < len(NAMED):
        pytest.skip("it needs two GPUs")
    share = len(gpus) // 2
    seen = ran(tmp_path, device, gpus[: 2 * share], nodes=2)

    expected = [",".join(gpus[:share])] * share + [",".join(gpus[share : 2 * share])] * share
    assert [rank["variables"][VISIBLE_DEVICES] for rank in seen.ranks] == expected
    assert {rank["world"] for rank in seen.ranks} == {2 * share}
