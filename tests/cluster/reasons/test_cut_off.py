"""Agents that can't connect to the operator: reported before the start, tolerated afterwards."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from cluster import lan
from cluster.images import PULL_POLICY, PYTHON_IMAGE
from cluster.operator.cluster_jobs import FOREVER
from cluster.reasons import machine
from cluster.reasons.stage import SOON_SECONDS, Stage, template
from cluster.reasons.timeline import ObservedChange, Predicate, pod_of, says
from cluster.say import say
from muster.collector.heartbeat import MIN_HEARTBEAT_SECONDS
from muster.core.facts import MAX_MISSED_HEARTBEATS
from muster.core.failure.problems import UNREACHABLE_SECONDS

SILENT_SECONDS = MAX_MISSED_HEARTBEATS * MIN_HEARTBEAT_SECONDS


def until_cut_off(port: int) -> str:
    """Return the command of an init container that waits until the pod is disconnected."""
    return f"""
import socket
while True:
    try:
        socket.create_connection(({lan.HOST!r}, {port}), timeout=0.5).close()
    except OSError:
        break
"""


def ranks_are(name: str, state: str, count: int) -> Predicate:
    def is_it(seen: ObservedChange) -> bool:
        by_state = seen.status.get("ranks", {}).get("byState", []) if seen.kind == "Job" and seen.name == name else []
        return {"state": state, "count": count}.items() <= next(
            (entry for entry in by_state if entry["state"] == state), {}
        ).items()

    return is_it


@pytest.fixture
def cut() -> Iterator[ExitStack]:
    """Yield the blocked connections, until the end of the block."""
    with ExitStack() as cuts:
        yield cuts


def test_agents_that_are_not_heard(stage: Stage, cut: ExitStack) -> None:
    wait = {
        "name": "wait",
        "image": PYTHON_IMAGE,
        "imagePullPolicy": PULL_POLICY,
        "command": ["python3", "-c", until_cut_off(stage.operator.collector_port)],
    }
    stage.apply("mute", template=template(initContainers=[wait]))
    stage.apply("torn", FOREVER, nodes=2, procsPerNode=2)
    stage.timeline.first(pod_of("mute", lambda pod: pod["status"].get("podIP")))
    cut.enter_context(machine.cut_off(stage.pod("mute")))
    a_running_job_that_is_cut_off_comes_back(stage)
    began = stage.timeline.first(pod_of("mute", _runs))
    value = stage.timeline.first(says("mute", "AgentUnreachable"), UNREACHABLE_SECONDS + SOON_SECONDS)
    say(f"mute: AgentUnreachable {value.at - began.at:.2f} s after its container ran: {value.status['message']}")
    assert value.at - began.at <= UNREACHABLE_SECONDS + SOON_SECONDS
    assert "NetworkPolicy" in value.status["message"]
    cut.close()
    stage.completes("mute")
    stage.warned_once("mute", "AgentUnreachable")


def a_running_job_that_is_cut_off_comes_back(stage: Stage) -> None:
    stage.runs("torn")
    stage.timeline.first(ranks_are("torn", "Running", 4))
    with machine.cut_off(stage.started_pod("torn", 1)):
        cut = stage.now()
        unknown = stage.timeline.first(ranks_are("torn", "Unknown", 2))
        say(f"torn: Unknown after {unknown.at - cut:.2f} s: {unknown.status['message']}")
        assert unknown.at - cut <= SILENT_SECONDS + SOON_SECONDS
        assert "torn-1 has not reported since" in unknown.status["message"]
        assert unknown.status["phase"] == "Running"
    healed = stage.now()
    back = stage.timeline.first(lambda seen: seen.at > healed and ranks_are("torn", "Running", 4)(seen))
    say(f"torn: all ranks run again {back.at - healed:.2f} s after the cut was healed: {back.status['message']}")
    stage.jobs.run("delete", "dtj/torn", "--wait=false")


def _runs(pod: object) -> bool:
    assert isinstance(pod, dict)
    status = pod["status"].get("containerStatuses", [{}])[0]
    return "running" in status.get("state", {})
