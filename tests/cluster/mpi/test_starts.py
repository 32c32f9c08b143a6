"""A second start of an MPI gang, by another operator: its agents authenticate with the credentials of that operator."""

import signal

import pytest

from cluster.mpi.mpi_site import MpiSite
from cluster.mpi.pod_installs import pod_install

STAY = "import time; from mpi4py import MPI; MPI.COMM_WORLD.barrier(); print('met', flush=True); time.sleep(600)"
ALL = "jsonpath={.status.ranks.ready}=4/4"


@pytest.mark.timeout(180)
def test_a_gang_starts_again_under_another_operator(mpi_site: MpiSite) -> None:
    jobs, operators = mpi_site.jobs, mpi_site.site.operators
    mpi_site.apply("nap", pod_install("openmpi5"), ("python3", "-c", STAY))
    jobs.wait("nap", ALL)
    operators.started[-1].signal(signal.SIGTERM)
    operators.start()
    status = jobs.status("nap")
    assert (status["phase"], status["attempt"]) == ("Running", 1), mpi_site.why("nap")
    jobs.patch("nap", suspend=True)
    jobs.wait("nap", "condition=Suspended")
    jobs.patch("nap", suspend=False)
    jobs.wait("nap", ALL)
    assert jobs.status("nap")["attempt"] == 2, mpi_site.why("nap")
    jobs.run("delete", "dtj/nap", "--wait=true")
