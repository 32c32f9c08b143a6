"""When a job's Service selects its pods, on a real API server. The tests write the pods' addresses."""

from cluster.backend.world import Operator, World
from muster.api.document import JSON
from muster.api.json_fields import read_mapping
from muster.api.spec.job import Job
from muster.core.actions import SendCommand
from muster.objects.kubernetes.kinds import PODS, SERVICES, Object
from muster_worker.contract.schema import Command, CommandKind


async def _give_address(world: World, pod: str, address: str) -> None:
    """Do what a kubelet does when the pod's network is ready."""
    status: Object = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
    await world.client.merge(PODS, world.namespace, pod, {"status": dict(status)}, "status")


async def _until_addresses(operator: Operator, job: Job, count: int) -> None:
    """Wait until the operator knows the addresses of this many nodes."""
    while True:
        newest = (operator.pods.get_newest_pod(job.metadata.uid, node) for node in range(job.spec.nodes))
        if sum(entry is not None and bool(entry.pod.ip) for entry in newest) == count:
            return
        await operator.until_changed()


async def _selector(world: World) -> JSON:
    """Return the selector of the job's Service; None without one."""
    service = await world.client.get(SERVICES, world.namespace, "vit-muster")
    return read_mapping(service.get("spec")).get("selector")


def _another_owners_service() -> Object:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "vit-muster"}, "spec": {"clusterIP": "None"}}


async def test_the_service_selects_the_pods_once_they_have_addresses(world: World) -> None:
    operator, job = world.operator(), world.job()
    async with operator.informed(world.namespace):
        await operator.create(job)
        assert await _selector(world) is None
        await _give_address(world, "vit-0-0", "10.1.2.3")
        await _until_addresses(operator, job, 1)
        await operator.apply(job)
        assert await _selector(world) is None
        await _give_address(world, "vit-1-0", "10.1.2.4")
        await _until_addresses(operator, job, 2)
        await operator.apply(job)
        assert await _selector(world) == {"muster.dev/job-uid": job.metadata.uid}


async def test_a_service_that_a_user_deleted_is_created_before_the_ranks_start(world: World) -> None:
    operator, job = world.operator(), world.job()
    async with operator.informed(world.namespace):
        await operator.create(job)
        await world.client.delete(SERVICES, world.namespace, "vit-muster")
        for node in range(2):
            await _give_address(world, f"vit-{node}-0", f"10.1.2.{3 + node}")
        await _until_addresses(operator, job, 2)
        await operator.apply(job)
        assert await _selector(world) == {"muster.dev/job-uid": job.metadata.uid}


async def test_a_service_that_a_user_deletes_later_is_created_before_the_next_attempt(world: World) -> None:
    operator, job = world.operator(), world.job()
    async with operator.informed(world.namespace):
        await operator.create(job)
        for node in range(2):
            await _give_address(world, f"vit-{node}-0", f"10.1.2.{3 + node}")
        await _until_addresses(operator, job, 2)
        await operator.apply(job)
        await world.client.delete(SERVICES, world.namespace, "vit-muster")
        await operator.apply(job)
        assert not (await world.client.list(SERVICES, world.namespace)).items
        await operator.apply(job, SendCommand((0, 1), Command(1, job.metadata.uid, 2, CommandKind.START)))
        assert await _selector(world) == {"muster.dev/job-uid": job.metadata.uid}


async def test_another_owners_service_is_not_changed(world: World) -> None:
    operator, job = world.operator(), world.job()
    async with operator.informed(world.namespace):
        await operator.create(job)
        await world.client.delete(SERVICES, world.namespace, "vit-muster")
        await world.client.create(SERVICES, world.namespace, _another_owners_service())
        for node in range(2):
            await _give_address(world, f"vit-{node}-0", f"10.1.2.{3 + node}")
        await _until_addresses(operator, job, 2)
        await operator.apply(job)
        assert await _selector(world) is None
