"""Pods and their objects appear in any order, and the operator gets their events late: the job still starts."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from cluster.api_proxy import PASS, ApiProxy, Call, Fate, Pass
from cluster.operator.cluster_jobs import FOREVER
from cluster.operator.operator_process import OperatorProcess
from cluster.operator.site import Site
from cluster.reasons.stage import template
from cluster.waiting import PAUSE_SECONDS
from muster.objects.kubernetes.names import build_agent_name
from muster.render.agent_archive import build_agent_archive

RUNNING = "jsonpath={.status.phase}=Running"
PODS = {"early-0-0", "early-1-0"}
LAG_SECONDS = 20.0


def late(is_it: Callable[[Call], bool]) -> Callable[[Call], Fate]:
    return lambda call: Pass(LAG_SECONDS) if is_it(call) else PASS


@pytest.fixture
async def lagging(site: Site, tmp_path: Path) -> AsyncIterator[ApiProxy]:
    """Yield an operator that gets no events about its pods for a while, only the answers to its own requests."""
    async with ApiProxy.serve(tmp_path, site.operators.kubeconfig) as proxy:
        proxy.decide = late(lambda call: (call.verb, call.resource) == ("watch", "pods"))
        for running in site.operators.started:
            running.end()
        log = tmp_path / "lagging.log"
        operator = OperatorProcess(site.kubectl, proxy.kubeconfig, site.namespace, log, site.operators.more)
        await asyncio.to_thread(operator.start)
        yield proxy
        operator.end()


async def test_a_job_starts_before_the_informer_tells_of_its_pods(lagging: ApiProxy, site: Site) -> None:
    jobs = site.jobs

    def live() -> str:
        jobs.apply("early", FOREVER, nodes=2, procsPerNode=1)
        jobs.wait("early", RUNNING)
        return str(jobs.run("get", "dtj/early", "--output=jsonpath={.status.ranks.ready}"))

    await asyncio.to_thread(live)
    creations = [
        call
        for call in lagging.calls
        if (call.verb, call.resource) == ("create", "pods") and not call.query.count("dryRun=All")
    ]
    assert sorted(json.loads(call.body)["metadata"]["name"] for call in creations) == sorted(PODS)
    await asyncio.to_thread(jobs.wait, "early", "jsonpath={.status.ranks.ready}=2/2")

    def list_asked_for() -> set[str]:
        return {call.name for call in lagging.calls if (call.verb, call.resource) == ("get", "pods")}

    # It asks for pods of which it hears nothing: they could have been deleted at once.
    async with asyncio.timeout(2 * LAG_SECONDS):
        while list_asked_for() != PODS:  # noqa: ASYNC110 - a call of the proxy is no event
            await asyncio.sleep(PAUSE_SECONDS)
    assert jobs.children("early", "pods") == {f"pod/{name}" for name in PODS}
    jobs.run("delete", "dtj/early", "--wait=false")


def test_config_maps_deleted_before_the_pods_start_are_created_again(operator: OperatorProcess, site: Site) -> None:
    jobs, place = site.jobs, f"{site.namespace}-placed"
    jobs.apply("placed", FOREVER, nodes=1, procsPerNode=1, template=template(nodeSelector={place: "here"}))
    jobs.wait("placed", "condition=Scheduled=False")
    jobs.kubectl.wait("create", "pod/placed-0-0", f"--namespace={site.namespace}")
    jobs.run("delete", "configmap/placed-muster", f"configmap/{build_agent_name(build_agent_archive())}")
    site.kubectl("label", "node", "node-1", f"{place}=here")
    try:
        jobs.wait("placed", RUNNING)
    finally:
        site.kubectl("label", "node", "node-1", f"{place}-")
    assert "configmap/placed-muster" in jobs.children("placed")
    jobs.run("delete", "dtj/placed", "--wait=false")
    assert "Traceback" not in operator.said
