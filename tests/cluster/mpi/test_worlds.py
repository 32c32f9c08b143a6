"""mpi4py on two nodes with two ranks each, started by every implementation's mpirun, as root and with few
permissions.
"""

from typing import Any

import pytest

from cluster.ended_job import succeeded
from cluster.mpi.mpi_site import RESTRICTED, ROOT, MpiSite
from cluster.mpi.pod_installs import pod_install
from cluster.reasons import machine
from support import mpi_installs

WORLD, SUM = 4, 6
MEET = """
import os, time
from mpi4py import MPI
world = MPI.COMM_WORLD
said = ["sum", world.allreduce(world.rank), "of", world.size, "by", world.rank, os.environ["SM_CURRENT_HOST"]]
os.write(1, (" ".join(map(str, [*said, "as", os.getuid()])) + "\\n").encode())  # in one piece: mpirun passes pieces on
world.barrier()
"""
STAY = "time.sleep(600)\n"


def met(site: MpiSite, name: str, user: int) -> None:
    """Every rank is on the job's node for it, and has received messages from all others."""
    for node in range(2):
        ranks = (2 * node, 2 * node + 1)
        lines = [f"[rank {rank}] sum {SUM} of {WORLD} by {rank} algo-{node + 1} as {user}\n" for rank in ranks]
        site.jobs.wait_for_log(f"{name}-{node}-0", *lines)


def by_state(status: Any) -> list[tuple[str, int, str]]:
    return [(entry["state"], entry["count"], entry["ranks"]) for entry in status["ranks"]["byState"]]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", mpi_installs.NAMES)
def test_a_world_of_two_nodes(mpi_site: MpiSite, name: str) -> None:
    """Run two jobs at once, because they wait most of the time."""
    mpi = pod_install(name)
    for job, script, rights in (("sum", MEET, ROOT), ("kill", MEET + STAY, RESTRICTED)):
        mpi_site.apply(f"{name}-{job}", mpi, ("python3", "-c", script), rights)
    completes(mpi_site, f"{name}-sum")
    names_the_killed_rank(mpi_site, f"{name}-kill")


def completes(site: MpiSite, name: str) -> None:
    """A job as root completes, and its status equals that of a torchrun job."""
    status = site.ended(name, "Complete")
    assert (status["phase"], succeeded(status), status["attempt"]) == ("Succeeded", "4/4", 1), site.why(name)
    assert by_state(status) == [("Succeeded", WORLD, "0-3")]
    assert status["message"] == "All 4 ranks succeeded"
    met(site, name, user=0)


def names_the_killed_rank(site: MpiSite, name: str) -> None:
    """The user has no entry in the image and no permissions, and the image has no sshd."""
    jobs = site.jobs
    jobs.wait(name, "jsonpath={.status.ranks.ready}=4/4")
    assert by_state(jobs.status(name)) == [("Running", WORLD, "0-3")]
    jobs.run("exec", f"{name}-1-0", "--", "sh", "-c", "! command -v sshd")
    met(site, name, user=1000)
    machine.kill(machine.rank(jobs.started_pod(f"{name}-1-0"), 2))
    status = site.ended(name, "Failed")
    first = status["ranks"]["details"][0]
    assert (first["rank"], first["state"], first["signal"], first["reason"]) == (2, "Failed", 9, "RankKilled")
    assert status["message"].startswith(f"Rank 2 on {name}-1 was killed by SIGKILL"), status["message"]
