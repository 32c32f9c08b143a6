"""The collector's authority changes while ranks run."""

import json
import time
from dataclasses import replace

import pytest

from muster_worker.agent.collector_client import MIN_READ_INTERVAL_SECONDS, TrustedAuthorities
from muster_worker.contract import wire
from muster_worker.contract.schema import AgentPhase, CommandKind
from support.agent_world import PATIENCE, AgentWorld

SLEEPING = ("sleep", "300")


@pytest.fixture
def running(world: AgentWorld) -> AgentWorld:
    world.make_plan(*SLEEPING)
    world.launch()
    world.wait(0, lambda report: report.phase == AgentPhase.RUNNING)
    return world


def until_said(world: AgentWorld, text: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while text not in world.log():
        assert time.monotonic() < deadline, world.log()
        time.sleep(0.05)  # the test gets no event when a file has grown


def test_an_agent_finds_the_new_authority_in_its_plan(running: AgentWorld) -> None:
    assert running.plan is not None
    old, new = running.collector.authority, running.collector.renew()
    # it uses only the authority of the newer plan
    bundle = replace(running.plan, collector_ca=old + new, collector_url="https://127.0.0.1:1", job_uid="another")
    running.write_plan(0, bundle)

    running.collector.reports.clear()
    running.wait(0, lambda report: report.phase == AgentPhase.RUNNING)
    running.send(CommandKind.KILL)
    running.wait_ended()
    assert running.leave() == 137


def test_the_plan_and_the_archive_of_an_upgraded_operator_do_no_harm(world: AgentWorld) -> None:
    archive = world.pack()
    world.make_plan("sh", "-c", "exit 7")
    world.start_agent()
    world.wait(0, lambda report: report.phase == AgentPhase.READY)
    assert world.plan is not None
    archive.with_suffix(".new").write_bytes(b"another version")
    archive.with_suffix(".new").replace(archive)
    newer = json.loads(wire.encode(world.plan))
    newer.update(version=2, news="of a later release", collector_ca=world.collector.renew())
    (world.short / "0" / "plan.json").write_text(json.dumps(newer))

    world.send(CommandKind.START)

    assert world.wait_ended().ranks[0].exit_code == 7
    assert world.leave() == 7


def test_half_a_plan_takes_nothing_away(world: AgentWorld) -> None:
    old, new = world.collector.authority, world.collector.renew()
    plans = iter(["-----BEGIN CERTIFICATE-----\n", new])
    trust = TrustedAuthorities(old, lambda: next(plans))
    before = trust.context
    assert not trust.renew(now=100.0)
    assert not trust.renew(now=100.0 + MIN_READ_INTERVAL_SECONDS - 1)  # too early to read again
    assert trust.context is before
    assert trust.renew(now=100.0 + MIN_READ_INTERVAL_SECONDS)
    assert trust.context.get_ca_certs() != before.get_ca_certs()


def test_an_outage_is_logged_once(running: AgentWorld) -> None:
    running.collector.refuse_with = 503
    until_said(running, "reports don't reach the collector")
    running.collector.refuse_with = None
    until_said(running, "reports reach the collector again")
    assert running.log().count("reports don't reach") == 1
