"""A job's pods on a real API server: created once, adopted, and refused."""

import json
from pathlib import Path

from cluster.api_proxy import ApiProxy, Call, Fate, Lose, Pass
from cluster.backend.world import World
from cluster.shared import Kubectl
from muster.api.document import JSON
from muster.api.json_fields import read_mapping, read_string
from muster.clients.kubernetes.client import Client
from muster.core.facts import ProcessState
from muster.core.problem import Problem
from muster.objects.kubernetes.errors import NO_RESPONSE, ApiError
from muster.objects.kubernetes.kinds import CONFIG_MAPS, SERVICES, Kind

WAITING, MISSING = ProcessState.WAITING, ProcessState.MISSING


async def _exists(client: Client, kind: Kind, namespace: str, name: str = "vit-muster") -> bool:
    try:
        await client.get(kind, namespace, name)
    except ApiError as error:
        if not error.is_not_found:
            raise
        return False
    return True


async def test_nodes_wait_as_soon_as_they_are_created(world: World) -> None:
    operator, job = world.operator(), world.job()
    before = await operator.nodes(job)
    assert [(node.process.state, node.process.replacement) for node in before] == [(MISSING, -1)] * 2
    await operator.create(job)
    facts = await operator.backend.observe(job)
    assert [(node.name, node.process.name, node.process.state) for node in facts.nodes] == [
        ("vit-0", "vit-0-0", WAITING),
        ("vit-1", "vit-1-0", WAITING),
    ]
    assert (facts.refusal, facts.surplus_pods, facts.has_outdated_pods) == (None, (), False)
    for kind in (SERVICES, CONFIG_MAPS):
        assert await _exists(world.client, kind, world.namespace)


async def test_creating_again_adopts_what_is_there(world: World) -> None:
    operator, job = world.operator(), world.job()
    await operator.create(job)
    # a new process whose informer has not reported anything yet
    another = world.operator()
    await another.create(job)
    assert await world.pods() == ["vit-0-0", "vit-1-0"]
    assert [node.process.state for node in await another.nodes(job)] == [WAITING] * 2


async def test_an_answer_that_is_lost_makes_no_second_pod(world: World, kubectl: Kubectl, tmp_path: Path) -> None:
    job = world.job()
    lost: set[str] = set()

    def lose_the_first(call: Call) -> Fate:
        if call.verb != "create" or call.resource in lost or "dryRun" in call.query:
            return Pass()
        lost.add(call.resource)
        return Lose()

    async with ApiProxy.serve(tmp_path, kubectl.kubeconfig) as proxy:
        proxied = await Client.connect(str(proxy.kubeconfig))
        proxy.decide = lose_the_first
        operator = world.operator(proxied)
        for _ in range(5):
            try:
                await operator.create(job)
            except ApiError as error:
                if error.status != NO_RESPONSE:
                    raise
        await proxied.close()
    assert lost == {"services", "configmaps", "pods"}
    assert await world.pods() == ["vit-0-0", "vit-1-0"]
    assert [node.process.state for node in await operator.nodes(job)] == [WAITING] * 2


async def test_what_the_api_server_does_not_know_is_refused_with_the_first_pod(world: World) -> None:
    operator = world.operator()
    wrong = world.job(template={"spec": {"nodeSelectr": {}, "schedulerName": "nobody"}})
    await operator.create(wrong)
    facts = await operator.backend.observe(wrong)
    assert facts.refusal == Problem("InvalidObject", "spec.template.spec.nodeSelectr: unknown field")
    assert await world.pods() == []
    # another generation of the resource is independent of it
    world.generation += 1
    right = world.job()
    assert (await operator.backend.observe(right)).refusal is None
    await operator.create(right)
    assert await world.pods() == ["vit-0-0", "vit-1-0"]


async def test_the_kinds_of_pods_are_rehearsed_each(world: World) -> None:
    operator = world.operator()
    override: dict[str, JSON] = {"nodes": "1", "template": {"spec": {"tolerations": [{"operator": "Sometimes"}]}}}
    await operator.create(job := world.job(nodeOverrides=[override]))
    refusal = (await operator.backend.observe(job)).refusal
    assert refusal is not None
    assert refusal.reason == "InvalidObject"
    assert "spec.template.spec.tolerations" in refusal.message
    assert await world.pods() == []


async def test_agents_are_told_of_a_new_authority(world: World) -> None:
    operator, job = world.operator(), world.job()
    await operator.create(job)
    operator.authority = "second"
    await operator.apply(job)
    content = await world.client.get(CONFIG_MAPS, world.namespace, "vit-muster")
    plan = json.loads(read_string(read_mapping(content.get("data")).get("plan.json")))
    assert plan["collector_ca"] == "second"
