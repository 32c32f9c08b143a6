"""A real API server accepts the slices, and a leader of an earlier term never overwrites those of a later one."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from cluster.shared import Kubectl
from muster.clients.kubernetes.client import Client
from muster.controller.trust import collector_endpoints
from muster.controller.trust.collector_endpoints import CollectorEndpoints, maintain_endpoints

SERVICE = "muster-collector"


@pytest.fixture
def service(kubectl: Kubectl, namespace: str) -> str:
    kubectl.apply(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": SERVICE, "namespace": namespace},
            "spec": {"ports": [{"name": "collector", "port": 8443}]},
        }
    )
    return namespace


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector_endpoints, "CHECK_SECONDS", 0.1)


@contextlib.asynccontextmanager
async def leader(client: Client, namespace: str, leader_term: int, *addresses: str) -> AsyncIterator[None]:
    here = CollectorEndpoints(namespace, SERVICE, addresses, 8443)
    task = asyncio.create_task(maintain_endpoints(client, here, leader_term, lambda: 0.0))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def addresses(kubectl: Kubectl, namespace: str) -> list[str]:
    result: Any = json.loads(kubectl("get", "endpointslices", f"--namespace={namespace}", "--output=json"))
    return sorted(one for each in result["items"] for end in each["endpoints"] or () for one in end["addresses"])


async def until(what: Callable[[], bool]) -> None:
    async with asyncio.timeout(60.0):
        while not await asyncio.to_thread(what):  # noqa: ASYNC110 - there is no event to await
            await asyncio.sleep(0.1)


async def test_the_service_leads_to_the_leader_of_the_latest_leader_term(
    client: Client, kubectl: Kubectl, service: str
) -> None:
    async with leader(client, service, 5, "10.0.0.5", "fd00::5"):
        await until(lambda: addresses(kubectl, service) == ["10.0.0.5", "fd00::5"])
        async with leader(client, service, 6, "10.0.0.6", "fd00::6"):
            await until(lambda: addresses(kubectl, service) == ["10.0.0.6", "fd00::6"])
            await asyncio.sleep(0.5)  # the leader of term 5 checks again, and changes nothing
            assert addresses(kubectl, service) == ["10.0.0.6", "fd00::6"]


async def test_what_somebody_changed_or_deleted_is_put_right(client: Client, kubectl: Kubectl, service: str) -> None:
    async with leader(client, service, 5, "10.0.0.5"):
        await until(lambda: addresses(kubectl, service) == ["10.0.0.5"])
        patch = json.dumps({"endpoints": [{"addresses": ["10.0.0.9"]}]})
        kubectl("patch", "endpointslice", f"{SERVICE}-ipv4", f"--namespace={service}", "--type=merge", f"-p={patch}")
        await until(lambda: addresses(kubectl, service) == ["10.0.0.5"])
        kubectl("delete", "endpointslice", f"{SERVICE}-ipv4", f"--namespace={service}")
        await until(lambda: addresses(kubectl, service) == ["10.0.0.5"])


async def test_it_waits_for_the_service(client: Client, kubectl: Kubectl, namespace: str) -> None:
    async with leader(client, namespace, 5, "10.0.0.5"):
        await asyncio.sleep(0.5)
        assert addresses(kubectl, namespace) == []
        kubectl.apply(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": SERVICE, "namespace": namespace},
                "spec": {"ports": [{"name": "collector", "port": 8443}]},
            }
        )
        await until(lambda: addresses(kubectl, namespace) == ["10.0.0.5"])
