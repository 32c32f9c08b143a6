"""Jobs with the real coscheduling plug-in, built from its Go module, on a cluster with room for four pods."""

import json

import pytest

from cluster.queues.gangs import Gangs
from cluster.say import say

pytestmark = pytest.mark.long

LARGER = 3
"""The pods of a gang of which two have room beside a gang of two."""


def test_a_gang_waits_as_a_whole_though_some_of_it_has_room(coscheduling: Gangs) -> None:
    coscheduling.apply("first")
    coscheduling.run("first")
    coscheduling.apply("second", nodes=LARGER)
    coscheduling.wait_for_queue("second", "Unschedulable", LARGER)
    # The pod that found no room says what is missing only until the plug-in tries the gang again.
    coscheduling.until(lambda: "no room for the whole gang" in coscheduling.jobs.status("second")["message"])
    say(f"muster: {coscheduling.jobs.status('second')['message']}")
    assert coscheduling.has_no_placed_pod("second")
    group = json.loads(coscheduling.jobs.run("get", "podgroup.scheduling.x-k8s.io/second-muster", "--output=json"))
    say(f"the PodGroup: {group['status']}")
    assert group["spec"]["minMember"] == LARGER
    coscheduling.end("first")
    coscheduling.run("second")
    coscheduling.end("second")
