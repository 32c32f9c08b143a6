"""Changes of a job: most apply to the next start of a suspended job. test_resources.py has the refused ones."""

import json
from collections.abc import Iterator

import pytest

from cluster.images import PULL_POLICY
from cluster.operator.site import Site

SAYS = "import os, time; print('world', os.environ['WORLD_SIZE'], os.environ.get('MODE'), flush=True); time.sleep(600)"


@pytest.fixture(scope="module")
def changing(site: Site) -> Iterator[Site]:
    """Jobs that start in parallel: one becomes larger and different, one smaller."""
    if not (site.operators.started and site.operators.started[-1].runs):
        site.operators.start()
    site.jobs.apply("grown", SAYS, nodes=1, procsPerNode=1)
    site.jobs.apply("shrunk", SAYS, nodes=3, procsPerNode=1)
    for name, ranks in (("grown", 1), ("shrunk", 3)):
        site.jobs.wait(name, f"jsonpath={{.status.ranks.running}}={ranks}")
    yield site
    site.jobs.run("delete", "dtj", "grown", "shrunk", "--wait=false")


def template(**env: str) -> object:
    variables = [{"name": name, "value": value} for name, value in env.items()]
    trainer = {"name": "trainer", "imagePullPolicy": PULL_POLICY, "env": variables}
    return {"spec": {"terminationGracePeriodSeconds": 6, "containers": [trainer]}}


def suspend(site: Site, *names: str) -> None:
    for name in names:
        site.jobs.patch(name, suspend=True)
    for name in names:
        site.jobs.wait(name, "condition=Suspended")
        assert site.jobs.children(name, "pods") == set()


def test_a_suspended_job_is_changed_and_its_next_start_is_of_the_new_spec(changing: Site) -> None:
    jobs = changing.jobs
    suspend(changing, "grown", "shrunk")
    jobs.run("scale", "dtj/grown", "--replicas=2")
    jobs.patch("grown", template=template(MODE="other"))
    jobs.patch("shrunk", nodes=1, command=["python3", "-c", f"{SAYS}; print('never')"], procsPerNode=2)
    for name in ("grown", "shrunk"):
        jobs.patch(name, suspend=False)
    for name in ("grown", "shrunk"):
        jobs.wait(name, "jsonpath={.status.ranks.ready}=2/2")
        status = jobs.status(name)
        assert (status["phase"], status["attempt"], status["ranks"]["world"]) == ("Running", 2, 2)
    assert jobs.children("grown", "pods") == {"pod/grown-0-1", "pod/grown-1-1"}
    assert jobs.children("shrunk", "pods") == {"pod/shrunk-0-1"}
    for pod in ("grown-0-1", "grown-1-1"):
        jobs.wait_for_log(pod, "world 2 other")
    jobs.wait_for_log("shrunk-0-1", "world 2 None")
    assert json.loads(jobs.run("get", "dtj/shrunk", "--subresource=scale", "--output=json"))["spec"]["replicas"] == 1
