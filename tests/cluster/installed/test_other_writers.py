"""Another client writes to the resource all the time (a GitOps controller, a user's script): no change is lost."""

import json
import time
from collections.abc import AsyncIterator

import pytest

from cluster import audit, places, rights
from cluster.ended_job import succeeded
from cluster.held_job import JOB, held_job, let_go, status, steps
from cluster.installation import Installation
from cluster.installed.awaited import until
from cluster.shared import SharedCluster
from muster.clients.kubernetes.client import Client
from muster.objects.kubernetes.kinds import JOBS

MARK = "example.com/mark"
SECONDS = 60.0
LOOK_SECONDS = 2.0


@pytest.fixture
async def client(installed_operator: Installation) -> AsyncIterator[Client]:
    connected = await Client.connect(str(installed_operator.kubectl.kubeconfig))
    yield connected
    await connected.close()


async def test_what_others_write_meanwhile_stays_and_the_status_goes_on(
    installed_operator: Installation, shared_cluster: SharedCluster, client: Client
) -> None:
    shared_cluster.up()
    kubectl, namespace = installed_operator.kubectl, installed_operator.namespace
    kubectl.apply(held_job("marked", namespace))
    until(lambda: steps(kubectl, namespace, "marked"), SECONDS)
    mark, met, deadline = 0, False, time.monotonic() + SECONDS
    while not met:
        assert time.monotonic() < deadline, "the operator has never met a write of ours"
        mark, look = await write(client, namespace, mark), steps(kubectl, namespace, "marked")
        met = has_read_again(f"{installed_operator.system}:muster", namespace)
    until(lambda: steps(kubectl, namespace, "marked") > look, SECONDS)
    resource = json.loads(kubectl("get", JOB, "marked", f"--namespace={namespace}", "--output=json"))
    assert resource["metadata"]["annotations"][MARK] == str(mark)
    let_go(kubectl, namespace, "marked")
    kubectl.wait("condition=Complete", f"{JOB}/marked", f"--namespace={namespace}")
    assert succeeded(status(kubectl, namespace, "marked")) == "4/4"
    kubectl("delete", JOB, "marked", f"--namespace={namespace}")


async def write(client: Client, namespace: str, mark: int) -> int:
    """Write for a while as fast as the API server accepts it; return the last mark."""
    until_then = time.monotonic() + LOOK_SECONDS
    while time.monotonic() < until_then:
        mark += 1
        await client.merge(JOBS, namespace, "marked", {"metadata": {"annotations": {MARK: str(mark)}}})
    return mark


def has_read_again(account: str, namespace: str) -> bool:
    """Whether the operator has read the job again, which it does after a conflict."""
    result = rights.uses(audit.events(places.state()), account)
    return any((use.verb, use.resource, use.namespace) == ("get", JOBS.plural, namespace) for use in result)
