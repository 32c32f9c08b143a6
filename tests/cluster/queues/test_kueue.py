"""Jobs in a real Kueue: built from its Go module, installed by its own chart, with room for one gang."""

import json
from dataclasses import replace
from typing import Any

import pytest

from cluster.queues import kueue_site
from cluster.queues.gangs import Gangs
from cluster.say import say

pytestmark = pytest.mark.long

REQUIRED_TOPOLOGY = "kueue.x-k8s.io/podset-required-topology"
LOW, HIGH = ({"metadata": {"labels": {"kueue.x-k8s.io/priority-class": name}}} for name in ("low", "high"))


def test_the_second_gang_waits_until_the_first_ends(kueue: Gangs) -> None:
    kueue.apply("first")
    kueue.run("first")
    kueue.apply("second")
    kueue.wait_for_queue("second", "SchedulingGated")
    kueue.until(lambda: find_condition(workload(kueue, "second"), "QuotaReserved"))
    message = str(kueue.jobs.status("second")["message"])
    waiting = find_condition(workload(kueue, "second"), "QuotaReserved")
    say(f"muster: {message}; Kueue: {waiting}")
    assert f"`kubectl describe workload {group(kueue, 'second')}`" in message
    assert "insufficient unused quota for cpu" in waiting["message"]
    assert kueue.has_no_placed_pod("second")
    say(kueue.jobs.run("get", "workloads"))
    kueue.end("first")
    kueue.run("second")
    kueue.end("second")


def test_a_failed_job_releases_its_quota(kueue: Gangs) -> None:
    kueue.apply("failing", "raise SystemExit(3)")
    kueue.jobs.wait("failing", "condition=Failed")
    kueue.apply("next")
    kueue.run("next")
    kueue.end("next")


def test_a_higher_priority_preempts_a_gang_that_comes_back(kueue: Gangs) -> None:
    kueue.apply("low", template=LOW)
    kueue.run("low")
    kueue.apply("high", template=HIGH)
    kueue.run("high")
    kueue.wait_for_queue("low", "SchedulingGated")
    restarts = kueue.jobs.status("low")["restarts"]
    say(f"{restarts}")
    say(kueue.jobs.run("get", "workloads"))
    assert [(record["reason"], record["countsAs"]) for record in restarts["history"]] == [("Preempted", "Disruption")]
    assert kueue.has_no_placed_pod("low")
    kueue.end("high")
    kueue.run("low")
    assert kueue.jobs.status("low")["attempt"] == 2
    kueue.end("low")


def test_a_lost_pod_is_replaced_within_the_quota(kueue: Gangs) -> None:
    """The other pod stays, and the replacement has no need to queue behind other jobs."""
    kueue.apply("losing")
    kueue.run("losing")
    first = group(kueue, "losing")
    kueue.apply("behind")
    kueue.wait_for_queue("behind", "SchedulingGated")
    kueue.jobs.run("delete", "pod", "losing-1-0", "--wait=false")
    kueue.jobs.wait("losing", "jsonpath={.status.attempt}=2")
    kueue.run("losing")
    assert {pod["metadata"]["name"] for pod in kueue.pods("losing")} == {"losing-0-0", "losing-1-1"}
    assert group(kueue, "losing") == first
    assert kueue.has_no_placed_pod("behind")
    kueue.end("losing")
    kueue.run("behind")
    kueue.end("behind")


def test_kueue_places_a_gang_within_one_domain_of_its_topology(kueue: Gangs) -> None:
    """The cluster's scheduler would place one pod on each Kubernetes node."""
    kueue.site.kubectl.apply(*kueue_site.make_rack_queue(kueue.site.namespace))
    close = replace(kueue, queue={"kueue": kueue_site.RACK_QUEUE})
    close.apply("close", template={"metadata": {"annotations": {REQUIRED_TOPOLOGY: kueue_site.HOST_LABEL}}})
    close.run("close")
    assert len({pod["spec"]["nodeName"] for pod in close.pods("close")}) == 1
    close.end("close")


def group(kueue: Gangs, name: str) -> str:
    """Return the name of the group of the job's pods, which all of them share."""
    [name] = {pod["metadata"]["labels"]["kueue.x-k8s.io/pod-group-name"] for pod in kueue.pods(name)}
    return name


def workload(kueue: Gangs, name: str) -> Any:
    """Return the Workload of the job's pods; {} before Kueue has created it."""
    return json.loads(
        kueue.jobs.run("get", "workload", group(kueue, name), "--ignore-not-found", "--output=json") or "{}"
    )


def find_condition(workload: Any, kind: str) -> Any:
    """Return a condition of a Workload; {} without one."""
    conditions = workload.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == kind), {})
