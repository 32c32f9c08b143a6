"""`muster run` of MPI jobs with real implementations: the status names the failed rank, not those that mpirun ends."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from integration.run.muster_run import run, write_job
from support.mpi_installs import install_or_skip

MPI: dict[str, object] = {"mpi": {}}

SCRIPT = """
import os, signal, sys, time
from mpi4py import MPI
world = MPI.COMM_WORLD
world.Barrier()
if world.Get_rank() == 2:
    {act}
world.Barrier()
"""

EXIT_3 = "os._exit(3)"
KILL = "os.kill(os.getpid(), signal.SIGKILL)"
ABORT = "world.Abort(3)"
LEAVE = "os._exit(0)"

IMPLEMENTATIONS = ("openmpi5", "mpich")

FAILURES = [
    (EXIT_3, "RankFailed", r"Rank 2 on tiny-1 failed with exit code 3; \d others? "),
    (KILL, "RankKilled", r"Rank 2 on tiny-1 was killed by SIGKILL; \d others? "),
    (ABORT, "Rank(Failed|Killed)", r"Rank 2 on tiny-1 (failed with exit code 3|called MPI_Abort: Abort\(3\))"),
]


def environment(name: str) -> dict[str, str]:
    """Return this process' environment with an implementation's programs, and its mpi4py."""
    variables = install_or_skip(name).add_to(os.environ)
    return {**variables, "PYTHONPATH": variables["MPI4PY"]}


def status_of(folder: Path, command: list[str], variables: Mapping[str, str]) -> dict[str, Any]:
    job = write_job(folder, command, launcher=MPI, metrics=[])
    ended = run(folder, job, "-o", "json", env=variables)
    assert ended.left() == []
    status: dict[str, Any] = json.loads(ended.stdout)["status"]
    return status


def reason_of(status: Mapping[str, Any]) -> str:
    (reason,) = (entry["reason"] for entry in status["conditions"] if entry["type"] == "Failed")
    return str(reason)


# In `make test` the agents see these ends of MPICH's ranks without `muster run` (integration/mpi/test_mpi_world.py).
AT_LENGTH = {("mpich", EXIT_3), ("mpich", KILL), ("mpich", ABORT)}


@pytest.mark.parametrize(
    ("mpi", "act", "reason", "message"),
    [
        pytest.param(mpi, *failure, marks=[pytest.mark.long] if (mpi, failure[0]) in AT_LENGTH else [])
        for mpi in IMPLEMENTATIONS
        for failure in FAILURES
    ],
)
def test_the_first_rank_to_fail_is_named(mpi: str, act: str, reason: str, message: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(act=act))

    status = status_of(tmp_path, ["python", str(script)], environment(mpi))

    assert re.match(message, status["message"]), status["message"]
    assert re.fullmatch(reason, reason_of(status))
    first = status["ranks"]["details"][0]
    assert (first["rank"], first["node"]) == (2, 1)


def test_a_rank_that_leaves_without_a_farewell_is_named(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(act=LEAVE))

    status = status_of(tmp_path, ["python", str(script)], environment("openmpi5"))

    assert re.match(r"Rank 2 on tiny-1 ended early with exit code 0; rank \d on tiny-\d then ", status["message"])


# In `make test` the agents start one without `muster run` (integration/mpi/test_mpi_world.py).
@pytest.mark.long
@pytest.mark.parametrize("mpi", IMPLEMENTATIONS)
def test_an_mpirun_of_the_owners_own_makes_the_jobs_world(mpi: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(act="pass"))

    status = status_of(tmp_path, ["mpirun", "-n", "4", "python", str(script)], environment(mpi))

    assert status["message"] == "All 4 ranks succeeded"


@pytest.mark.parametrize("mpi", ["openmpi5", pytest.param("mpich", marks=pytest.mark.long)])
def test_folders_may_have_spaces(mpi: str, tmp_path: Path) -> None:
    """mpirun gets paths of the run's private folder, which never has spaces: a space would end a path."""
    folder = tmp_path / "it's; a place"
    folder.mkdir()

    status = status_of(folder, ["sh", "-c", 'test -d "$TMPDIR"'], {**environment(mpi), "TMPDIR": str(folder)})

    assert status["message"] == "All 4 ranks succeeded"


# As above.
@pytest.mark.long
def test_a_world_on_one_node_is_no_success(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(act="pass"))
    command = ["mpirun", "--host", "localhost:4", "-np", "4", "python", str(script)]

    status = status_of(tmp_path, command, environment("openmpi5"))

    assert reason_of(status) == "WorldSizeMismatch"
    assert status["message"].startswith(
        "mpirun gave a world of 4 ranks on one node; the job asks for 2 nodes x 2 ranks; 2 others were not started"
    )


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["mpirun", "--no-such-option"], r"mpirun on tiny-0 failed with exit code \d+: An unrecognized option was "),
        (
            ["./nothing"],
            (
                r"((All )?\d ranks|Rank \d on tiny-\d) (failed the same way with exit code 127|could not start)"
                r".*'./nothing'"
            ),
        ),
    ],
)
def test_a_failed_start_is_explained(command: list[str], message: str, tmp_path: Path) -> None:
    status = status_of(tmp_path, command, environment("openmpi5"))

    assert re.match(message, status["message"]), status["message"]
