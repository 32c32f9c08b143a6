"""Pods that send the operator more than it can process, and another job with reports."""

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import pytest

from cluster.operator.cluster_jobs import FOREVER
from cluster.operator.site import Site
from cluster.reasons.timeline import Timeline
from cluster.security.intruder import Place, collector, progress_of
from muster.api.timestamps import parse_timestamp

pytestmark = pytest.mark.alone

FLOOD = Path(__file__).with_name("flood_workload.py").read_text(encoding="utf-8")
FLOODING = ("flood-0-0", "flood-1-0")
SOON_SECONDS = 10.0

UNTIL_TOLD = """
import os, sys, time

while not os.path.exists("/tmp/go"):
    time.sleep(0.02)
sys.exit("that was it")
"""


def test_another_job_is_heard_while_pods_flood_the_collector(guarded: Site) -> None:
    jobs = guarded.jobs
    jobs.apply("flood", FOREVER, nodes=2, procsPerNode=1)
    jobs.apply("calm", UNTIL_TOLD, nodes=1, procsPerNode=1)
    jobs.wait("flood", "jsonpath={.status.ranks.running}=2")
    jobs.wait("calm", "jsonpath={.status.ranks.running}=1")
    timeline = Timeline(guarded.kubectl, guarded.namespace)
    try:
        with flooded(guarded) as floods:
            counts = [_await_refusals(flood) for flood in floods]
            jobs.run("exec", "calm-0-0", "--container=trainer", "--", "touch", "/tmp/go")  # noqa: S108 - the pod's
            is_told = timeline.first(lambda seen: (seen.kind, seen.name) == ("Job", "calm") and _ended(seen.status))
            late = is_told.clock - parse_timestamp(is_told.status["ranks"]["details"][0]["at"])
            assert [flood.poll() for flood in floods] == [None, None], "they sent until then"
    finally:
        timeline.close()
    print(f"\nin the status after {late:.2f} s, before it: {counts}")  # noqa: T201 - a measurement
    assert late <= SOON_SECONDS
    assert jobs.status("flood")["phase"] == "Running"
    jobs.run("delete", "dtj", "flood", "calm", "--wait=false")


def _ended(status: object) -> bool:
    return "that was it" in json.dumps(status)


def _has_reached_limits(count: Counter[str]) -> bool:
    """Whether the collector has accepted some reports, and has refused others and those of strangers."""
    strangers = count["stranger 429"] + count["stranger 401"]
    return min(count["report 200"], count["report 429"], strangers) > 0


def _await_refusals(flood: "subprocess.Popen[str]") -> Counter[str]:
    """Wait until the collector has refused some of its requests. The time depends on the machine."""
    assert flood.stdout is not None
    for line in flood.stdout:
        if _has_reached_limits(count := Counter(json.loads(line))):
            return count
    pytest.fail("the flood ended before the collector refused anything")


@contextmanager
def flooded(site: Site) -> Iterator[list["subprocess.Popen[str]"]]:
    """Make both pods of the job send as much as possible."""
    uid = site.jobs.resource("flood")["metadata"]["uid"]
    floods = []
    try:
        for node, pod in enumerate(FLOODING):
            wanted = {**asdict(collector(site, "flood")), "report": progress_of(Place(uid, node))}
            where = (f"--namespace={site.namespace}", "exec", pod, "--container=trainer")
            floods.append(site.kubectl.begin(*where, "--", "python3", "-Ic", FLOOD, json.dumps(wanted)))
        yield floods
    finally:
        # without a reader, the script exits, too
        for flood in floods:
            flood.kill()
            flood.communicate()
