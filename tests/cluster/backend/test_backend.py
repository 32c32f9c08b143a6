"""A job's pods on a real API server: created once, adopted, refused, deleted, and adopted by another operator."""

import json
from pathlib import Path

import pytest

from cluster.api_proxy import ApiProxy, Call, Fate, Lose, Pass
from cluster.backend.world import Operator, World
from cluster.shared import Kubectl
from muster.api.document import JSON
from muster.api.json_fields import read_mapping, read_string
from muster.backends.kubernetes.job_state import MAX_BACKOFF_SECONDS
from muster.backends.kubernetes.pod_creator import UNCONFIRMED_SECONDS
from muster.clients.kubernetes.client import Change, Client
from muster.core.actions import CreateNode, RemoveNode, RemoveSurplusPod, SendCommand
from muster.core.facts import ProcessState
from muster.core.problem import Problem
from muster.objects.kubernetes.errors import NO_RESPONSE, ApiError
from muster.objects.kubernetes.kinds import CONFIG_MAPS, PODS, SERVICES, Kind, Object
from muster_worker.contract.schema import Command, CommandKind

WAITING, MISSING = ProcessState.WAITING, ProcessState.MISSING


async def _exists(client: Client, kind: Kind, namespace: str, name: str = "vit-muster") -> bool:
    try:
        await client.get(kind, namespace, name)
    except ApiError as error:
        if not error.is_not_found:
            raise
        return False
    return True


async def _stranger(world: World, kind: Kind, name: str) -> None:
    spec: Object = {"schedulerName": "nobody", "containers": [{"name": "a", "image": "a"}]}
    bodies: dict[Kind, Object] = {
        PODS: {"spec": dict(spec)},
        SERVICES: {"spec": {"clusterIP": "None"}},
        CONFIG_MAPS: {"data": {"mine": "1"}},
    }
    head: Object = {"apiVersion": "v1", "kind": kind.name, "metadata": {"name": name}}
    await world.client.create(kind, world.namespace, {**head, **bodies[kind]})


async def _tell_all(world: World, operator: Operator) -> None:
    """Return what an informer's first list reports."""
    for pod in (await world.client.list(PODS, world.namespace)).items:
        operator.pods.handle_change(Change("ADDED", pod))


def _reason(problem: Problem | None) -> str | None:
    return None if problem is None else problem.reason


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


async def test_a_name_that_is_taken_is_waited_for(world: World) -> None:
    await _stranger(world, PODS, "vit-0-0")
    operator, job = world.operator(), world.job()
    await operator.create(job)
    taken, made = await operator.nodes(job)
    words = f"Pod vit-0-0 in namespace {world.namespace} exists and belongs to another owner: delete it first"
    assert taken.process.problem == Problem("NameTaken", words)
    assert made.process.state is WAITING
    await world.client.delete(PODS, world.namespace, "vit-0-0")
    world.clock.now += MAX_BACKOFF_SECONDS
    await operator.apply(job, CreateNode(0, 0))
    assert [(node.process.state, node.process.problem) for node in await operator.nodes(job)] == [(WAITING, None)] * 2


@pytest.mark.parametrize("kind", [SERVICES, CONFIG_MAPS])
async def test_a_childs_name_that_is_taken_is_waited_for(world: World, kind: Kind) -> None:
    await _stranger(world, kind, "vit-muster")
    operator, job = world.operator(), world.job()
    await operator.create(job)
    assert [_reason(node.process.problem) for node in await operator.nodes(job)] == ["NameTaken"] * 2
    assert await world.pods() == []


async def test_a_quota_holds_the_nodes_until_it_has_room(world: World, kubectl: Kubectl) -> None:
    quota: Object = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": world.namespace},
        "spec": {"hard": {"pods": "1"}},
    }
    kubectl("apply", "-f", "-", stdin=json.dumps(quota))
    kubectl.wait("jsonpath={.status.hard.pods}=1", "resourcequota/team", f"--namespace={world.namespace}")
    operator, job = world.operator(), world.job()
    await operator.create(job)
    states = {node.process.state for node in await operator.nodes(job)}
    held = [node for node in await operator.nodes(job) if node.process.state is MISSING]
    assert states == {WAITING, MISSING}
    assert [_reason(node.process.problem) for node in held] == ["QuotaExceeded"]
    assert held[0].process.problem is not None
    assert held[0].process.problem.message.startswith("quota team is exceeded: asked for pods=1, used pods=1")
    kubectl("delete", "resourcequota", "team", f"--namespace={world.namespace}")
    # it sends no request before the retry time
    await operator.apply(job, CreateNode(held[0].node, 0))
    assert len(await world.pods()) == 1
    world.clock.now += MAX_BACKOFF_SECONDS
    await operator.apply(job, CreateNode(held[0].node, 0))
    assert [(node.process.state, node.process.problem) for node in await operator.nodes(job)] == [(WAITING, None)] * 2


async def test_pod_security_holds_the_nodes(world: World, kubectl: Kubectl) -> None:
    kubectl("label", "namespace", world.namespace, "pod-security.kubernetes.io/enforce=restricted")
    operator, job = world.operator(), world.job()
    await operator.create(job)
    assert [_reason(node.process.problem) for node in await operator.nodes(job)] == ["PodSecurity"] * 2
    assert await world.pods() == []


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


async def test_another_operator_finds_everything_again(world: World) -> None:
    first, job = world.operator(), world.job()
    await first.create(job)
    second = world.operator()
    await _tell_all(world, second)
    facts = await second.backend.observe(job)
    assert [node.process.state for node in facts.nodes] == [WAITING] * 2
    assert not facts.has_outdated_pods
    assert (await second.backend.observe(world.job(command=["false"]))).has_outdated_pods is False
    world.generation += 1
    assert (await second.backend.observe(world.job(command=["false"]))).has_outdated_pods is True


async def test_a_removed_node_is_missing_and_nobodys_fault(world: World) -> None:
    operator, job = world.operator(), world.job()
    async with operator.informed(world.namespace):
        await operator.create(job)
        await operator.apply(job, RemoveNode(1, 5.0, "the job is suspended"))
        while (await operator.nodes(job))[1].process.state is not MISSING:
            await operator.until_changed()
        removed = (await operator.nodes(job))[1].process
        assert (removed.replacement, removed.problem) == (0, None)
        assert await world.pods() == ["vit-0-0"]


async def test_a_pod_that_somebody_deletes_is_told_and_may_be_made_anew(world: World) -> None:
    operator, job = world.operator(), world.job()
    async with operator.informed(world.namespace):
        await operator.create(job)
        uid = next(known.pod.uid for known in operator.pods.list_pods(job.metadata.uid) if known.pod.name == "vit-0-0")
        await world.client.delete(PODS, world.namespace, "vit-0-0")
        while (await operator.nodes(job))[0].process.state is not MISSING:
            await operator.until_changed()
        gone = (await operator.nodes(job))[0].process
        assert (gone.replacement, _reason(gone.problem)) == (0, "PodDeleted")
        assert operator.pods.find(uid) is None
        await operator.apply(job, CreateNode(0, 1))
        anew = (await operator.nodes(job))[0].process
        assert (anew.name, anew.replacement, anew.problem) == ("vit-0-1", 1, None)


async def test_a_pod_that_came_and_went_unseen_is_missed(world: World) -> None:
    operator, job = world.operator(), world.job()
    await operator.create(job)
    await world.client.delete(PODS, world.namespace, "vit-0-0")
    assert (await operator.nodes(job))[0].process.state is WAITING
    world.clock.now += UNCONFIRMED_SECONDS
    assert [node.process.state for node in await operator.nodes(job)] == [MISSING, WAITING]


async def test_surplus_pods_are_removed(world: World) -> None:
    operator, job = world.operator(), world.job()
    await operator.create(job)
    await operator.apply(job, CreateNode(0, 1))
    facts = await operator.backend.observe(world.job(nodes=1))
    assert set(facts.surplus_pods) == {"vit-0-0", "vit-1-0"}
    await operator.apply(world.job(nodes=1), *(RemoveSurplusPod(name) for name in facts.surplus_pods))
    assert await world.pods() == ["vit-0-1"]


async def test_agents_are_told_of_a_new_authority(world: World) -> None:
    operator, job = world.operator(), world.job()
    await operator.create(job)
    operator.authority = "second"
    await operator.apply(job)
    content = await world.client.get(CONFIG_MAPS, world.namespace, "vit-muster")
    plan = json.loads(read_string(read_mapping(content.get("data")).get("plan.json")))
    assert plan["collector_ca"] == "second"


async def test_a_replaced_pod_has_heard_nothing(world: World) -> None:
    operator, job = world.operator(), world.job()
    await operator.create(job)
    exit_ = Command(1, job.metadata.uid, 1, CommandKind.EXIT)
    world.clock.now += 1
    await operator.apply(job, SendCommand((0, 1), exit_))
    value = (await operator.nodes(job))[0]
    assert (value.command, value.command_sent_at) == (exit_, world.clock.now)
    assert operator.store.get_command(job.metadata.uid, 0, None) == exit_
    await operator.apply(job, CreateNode(0, 1))
    replaced, other = await operator.nodes(job)
    assert (replaced.command, other.command) == (None, exit_)
    assert operator.store.get_command(job.metadata.uid, 0, None) is None
