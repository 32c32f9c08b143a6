"""MPI jobs with the owner's own mpirun, with an mpirun that doesn't get muster's settings, and the example."""

import json
from dataclasses import replace
from typing import Any

import pytest
import yaml

from cluster.digits.example_job import EXAMPLES, put_code
from cluster.ended_job import succeeded
from cluster.mpi.mpi_site import USER, MpiSite
from cluster.mpi.pod_installs import pod_install

# Print the line in one write, because mpirun passes on each piece at once.
HELLO = (
    "import os; from mpi4py.MPI import COMM_WORLD as world; os.write(1, b'hello %d %d\\n' % (world.rank, world.size))"
)
OWN = ("mpirun", "-np", "4", "--map-by", "ppr:2:node", "python3", "-c", HELLO)
RAN = "it ran"
TOLERANCE = 0.01
# a program between the agent and mpirun that removes unknown variables
FORGET = """#!/bin/sh
for name in $(env | sed -n 's/^\\(PRTE_MCA_[^=]*\\)=.*/\\1/p'); do unset "$name"; done
exec {bin}/mpirun --map-by slot:oversubscribe "$@"
"""


@pytest.mark.timeout(180)
def test_commands(mpi_site: MpiSite) -> None:
    """Run all jobs at once, because they wait most of the time."""
    mpi_site.apply("own", pod_install("openmpi4"), OWN, USER)
    forgetful(mpi_site, "forgetful")
    messages(mpi_site)
    status = mpi_site.ended("own", "Complete")
    assert succeeded(status) == "4/4", mpi_site.why("own")
    said = mpi_site.jobs.run("logs", "own-0-0")  # mpirun prints the ranks' output
    assert all(f"hello {rank} 4" in said for rank in range(4)), said
    runs_nothing(mpi_site, "forgetful")
    averages(mpi_site, "mpi-messages")


def forgetful(site: MpiSite, name: str) -> None:
    """Apply a job whose image has another program instead of mpirun."""
    mpi = pod_install("openmpi5")
    code = {"mpirun": FORGET.format(bin=mpi.bin)}
    site.jobs.kubectl.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": site.jobs.namespace},
            "data": code,
        }
    )
    volume = {"name": "forgetful", "configMap": {"name": name, "defaultMode": 0o755}}
    mount = {"name": "forgetful", "mountPath": "/forgetful"}
    command = ("/forgetful/mpirun", "-np", "4", "python3", "-c", f"print({RAN!r})")
    site.apply(name, replace(mpi, volumes=(*mpi.volumes, volume), mounts=(*mpi.mounts, mount)), command)


def runs_nothing(site: MpiSite, name: str) -> None:
    """An Open MPI 5 without the settings for other nodes has a world of four ranks on this one, and would report
    success.
    """
    status = site.ended(name, "Failed")
    failed = next(entry for entry in status["conditions"] if entry["type"] == "Failed")
    assert failed["reason"] == "WorldSizeMismatch", site.why(name)
    expected = "mpirun gave a world of 4 ranks on one node; the job asks for 2 nodes x 2 ranks"
    assert expected in status["message"], status["message"]
    assert RAN not in site.jobs.run("logs", f"{name}-0-0")


def messages(site: MpiSite) -> None:
    """Apply the example unchanged, except for the image."""
    put_code(site.jobs.kubectl, site.jobs.namespace, "mpi_messages")
    job: dict[str, Any] = yaml.safe_load((EXAMPLES / "mpi_messages" / "job.yaml").read_text(encoding="utf-8"))
    job["spec"]["image"] = site.image
    # this machine has two cores, and others use them, too
    job["spec"]["resources"] = {"requests": {"cpu": "50m"}}
    job["spec"]["env"] = [{"name": "OMP_NUM_THREADS", "value": "1"}]
    site.jobs.run("apply", "--filename=-", stdin=json.dumps(job))


def averages(site: MpiSite, name: str) -> None:
    """The example runs on all 3 nodes."""
    status = site.ended(name, "Complete")
    assert (succeeded(status), status["phase"]) == ("6/6", "Succeeded"), site.why(name)
    assert abs(float(status["progress"]["metrics"]["average"]) - 0.5) < TOLERANCE
