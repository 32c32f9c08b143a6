"""Agents whose network is cut: they stop their ranks only if they reach neither the collector nor a peer."""

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from muster_worker.contract.schema import CommandKind
from support.agent_machines import Machines, machines_for
from support.agent_world import AgentWorld

pytestmark = pytest.mark.long

FENCE_SECONDS = 8.0
PATIENCE_SECONDS = 60.0

COUNTS = """
import itertools, time
for second in itertools.count():
    print("second", second, flush=True)
    time.sleep(1)
"""


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    with machines_for(tmp_path) as made:
        yield made


def launch(world: AgentWorld, interface: str, fence_seconds: float) -> None:
    """Start a rank on each node; both agents have asked each other."""
    world.make_plan("python3", world.write_script(COUNTS), nodes=2, interface=interface, fence_seconds=fence_seconds)
    world.launch()
    for node in range(2):
        until(partial(_has_contact, world, node), partial(world.log, node))


def _has_contact(world: AgentWorld, node: int) -> bool:
    return "other nodes answer" in world.log(node)


def lives(world: AgentWorld, node: int, seconds: int) -> None:
    """Wait until the node's rank has run for these seconds from now on."""
    last = world.log(node).count("second ") + seconds
    until(lambda: world.log(node).count("second ") >= last, lambda: world.log(node))


def until(holds: Callable[[], bool], said: Callable[[], str]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, said()
        time.sleep(0.05)


def set_links(machines: Machines, node: int, state: str, *links: str) -> None:
    machines.nodes[node].run_ip(*(f"link set {link} {state}" for link in links))


def message(world: AgentWorld, node: int) -> Any:
    return json.loads(world.get_termination_log(node).read_text())


def test_only_a_node_that_reaches_nothing_stops_its_ranks(machines: Machines) -> None:
    world = machines.connect().world
    launch(world, "fabric0", FENCE_SECONDS)
    # The operator is away: both agents still reach each other.
    for node in range(2):
        set_links(machines, node, "down", "eth0")
    lives(world, 1, int(2 * FENCE_SECONDS))
    assert all(agent.poll() is None for agent in world.agents.values())
    for node in range(2):
        set_links(machines, node, "up", "eth0")
    machines.nodes[1].run_ip(f"route replace {machines.nodes[0].gateway}/32 via {machines.nodes[1].gateway}")
    lives(world, 1, 3)
    # A short cut.
    set_links(machines, 1, "down", "fabric0")
    lives(world, 1, int(2 * FENCE_SECONDS))
    assert world.agents[1].poll() is None
    # A cut for good.
    set_links(machines, 1, "down", "eth0")
    cut_at = time.monotonic()
    code = world.agents[1].wait(PATIENCE_SECONDS)
    assert FENCE_SECONDS - 1 <= time.monotonic() - cut_at < FENCE_SECONDS + 15
    assert code != 0
    assert "stopping on this node has reached neither the collector nor another node of the job for" in world.log(1)
    assert message(world, 1)["problemReason"] == "Fenced"
    # The other node reaches the collector.
    lives(world, 0, int(FENCE_SECONDS) + 2)
    assert world.agents[0].poll() is None


def test_a_node_that_misses_the_end_of_the_attempt_hears_of_it_from_its_peer(world: AgentWorld) -> None:
    launch(world, "lo", 600.0)
    # The collector's refusal is no contact: it doesn't know the pod any more.
    world.collector.unknown_nodes.add(1)
    lives(world, 1, 8)
    world.send(CommandKind.STOP, nodes=[0])
    world.wait_ended(0)
    assert world.agents[1].wait(PATIENCE_SECONDS) != 0
    assert "another node of the job reports that the operator has ended this attempt" in world.log(1)
