"""The health of jobs as Flux and Argo CD compute it, with the check of docs/gitops.md."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster import programs
from cluster.operator.cluster_jobs import FOREVER, OK, Jobs
from cluster.operator.site import Site
from cluster.places import ROOT
from integration.docs.pages import blocks

CHECK = "resource.customizations.health.muster.dev_DistributedTrainingJob"
RUNNING = "jsonpath={.status.phase}=Running"
HEALTH = {
    "succeeded": ("Current", "Healthy"),
    "failed": ("Failed", "Degraded"),
    "refused": ("Failed", "Degraded"),
    "running": ("InProgress", "Progressing"),
    "suspended": ("Current", "Suspended"),
    "unscheduled": ("InProgress", "Progressing"),
}
ONE = {"nodes": 1, "procsPerNode": 1}


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The health check of the page, as a file."""
    [text] = [block.text for block in blocks(ROOT / "docs" / "gitops.md") if block.language == "yaml"]
    path = tmp_path_factory.mktemp("gitops") / "health.lua"
    path.write_text(yaml.safe_load(text)["data"][CHECK])
    return path


def compute_health(check: Path, resource: object) -> Any:
    """Return the health of a resource: of kstatus, of the check in Lua, and the message of the latter."""
    command = [str(programs.find("gitops")), str(check)]
    done = subprocess.run(command, input=json.dumps(resource), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def started(fields_site: Site) -> Jobs:
    """Jobs with all healths: all at once, because each takes seconds."""
    jobs = fields_site.jobs
    jobs.apply("succeeded", OK, **ONE)
    jobs.apply("failed", "raise SystemExit(3)", **ONE)
    jobs.apply("running", FOREVER, **ONE)
    jobs.apply("suspended", FOREVER, **ONE, suspend=True)
    jobs.apply("unscheduled", OK, **ONE, nodePool={"nodeSelector": {"muster.dev/none": "none"}})
    jobs.apply("refused", OK, **ONE, template={"spec": {"restartPolicy": "Always"}})
    jobs.wait("succeeded", "condition=Complete")
    jobs.wait("failed", "condition=Failed")
    jobs.wait("running", RUNNING)
    jobs.wait("suspended", "condition=Suspended")
    jobs.wait("unscheduled", "jsonpath={.status.conditions[?(@.type=='Scheduled')].reason}=Unschedulable")
    jobs.wait("refused", "condition=Accepted=False")
    return jobs


@pytest.mark.parametrize("name", HEALTH)
def test_flux_and_argo_cd_see_the_health_of_a_job(started: Jobs, check: Path, name: str) -> None:
    resource = started.resource(name)

    health = compute_health(check, resource)

    assert (health["kstatus"], health["argo"]) == HEALTH[name], resource["status"]
    assert health["message"] == resource["status"]["message"]


def test_a_job_that_no_operator_has_seen_is_in_progress(started: Jobs, check: Path) -> None:
    elsewhere = Jobs(started.kubectl, "default")
    elsewhere.apply("unseen")
    try:
        health = compute_health(check, elsewhere.resource("unseen"))
    finally:
        elsewhere.run("delete", "dtj/unseen")

    assert (health["kstatus"], health["argo"]) == ("InProgress", "Progressing")


def test_a_version_that_muster_has_not_seen_is_in_progress(started: Jobs, check: Path) -> None:
    resource = started.resource("succeeded")
    resource["metadata"]["generation"] += 1

    health = compute_health(check, resource)

    assert (health["kstatus"], health["argo"]) == ("InProgress", "Progressing")


def test_a_job_that_is_being_deleted_is_terminating(started: Jobs, check: Path) -> None:
    resource = started.resource("running")
    resource["metadata"]["deletionTimestamp"] = resource["metadata"]["creationTimestamp"]

    health = compute_health(check, resource)

    assert (health["kstatus"], health["argo"]) == ("Terminating", "Progressing")
